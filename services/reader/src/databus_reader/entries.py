"""Events are collected into entries of about 100 KB and appended to the pipe, as fast as the publisher takes them.

While one entry is on its way the next is collected, no more: memory stays bounded.
"""

import asyncio
from typing import Self

from databus import metrics
from databus.events import Event, encode_events
from databus.pipe import ReaderEnd
from databus.runtime import Health

#: An entry is closed at this size: smaller ones cost round trips, larger ones only memory.
ENTRY_BYTES = 96 * 1024
_RECHECK_SECONDS = 0.05


class EntryWriter:
    """Appends events as entries and holds the reader back while the backlog is over its limit."""

    def __init__(self, pipe: ReaderEnd, backlog_limit: int, health: Health) -> None:
        self._pipe = pipe
        self._health = health
        self._limit = backlog_limit
        self._encoded: list[bytes] = []
        self._events = self._size = 0
        self._appending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Forget what is collected, and what is on its way."""
        if task := self._appending:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def write(self, events: list[Event]) -> None:
        """Collect events, and append every entry that becomes full."""
        for start in range(0, len(events), _TOGETHER):
            some = events[start : start + _TOGETHER]
            encoded = encode_events(some)
            self._encoded.append(encoded[1:])  # without the head of so short an array
            self._events += len(some)
            self._size += len(encoded)
            if self._size >= ENTRY_BYTES:
                await self.flush()

    async def flush(self) -> None:
        """Send what is collected on its way, behind what is. Raises what that failed with."""
        if not self._events:
            if self._appending and self._appending.done():
                await self._appending  # nothing may follow that would tell
            return
        payload = b"".join((_ARRAY32, self._events.to_bytes(4, "big"), *self._encoded))
        self._encoded, self._events, self._size = [], 0, 0
        await self._appended()
        self._appending = asyncio.create_task(self._append(payload))

    async def published(self) -> None:
        """Wait until the publisher has published all that was flushed."""
        await self._appended()
        await self._until(0, await self._pipe.backlog())

    async def _append(self, payload: bytes) -> None:
        await self._until(self._limit, await self._pipe.append(payload))

    async def _appended(self) -> None:
        if self._appending:
            await self._appending

    async def _until(self, limit: int, backlog: int) -> None:
        while backlog > limit:
            metrics.BACKLOG_BYTES.set(backlog)
            self._health.beat()
            await asyncio.sleep(_RECHECK_SECONDS)
            backlog = await self._pipe.backlog()
        metrics.BACKLOG_BYTES.set(backlog)


_ARRAY32 = b"\xdd"  # msgpack: an array whose length follows in four bytes
_TOGETHER = 15  # msgpack: the longest array whose head is one byte
