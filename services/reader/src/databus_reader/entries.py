"""Events are collected into entries of about 100 KB and appended to the pipe, as fast as the publisher takes them."""

import asyncio

from databus import metrics
from databus.events import Event, encode_event
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
        self._events: list[bytes] = []
        self._size = 0

    async def write(self, events: list[Event]) -> None:
        """Collect events, and append every entry that becomes full."""
        for event in events:
            encoded = encode_event(event)
            self._events.append(encoded)
            self._size += len(encoded)
            if self._size >= ENTRY_BYTES:
                await self.flush()

    async def flush(self) -> None:
        """Append what is collected. Raises GenerationLost when the pipe refuses it."""
        if not self._events:
            return
        payload = b"".join((_ARRAY32, len(self._events).to_bytes(4, "big"), *self._events))
        self._events, self._size = [], 0
        await self._until(self._limit, await self._pipe.append(payload))

    async def taken(self) -> None:
        """Wait until the publisher has taken all that was appended."""
        await self._until(0, await self._pipe.backlog())

    async def _until(self, limit: int, backlog: int) -> None:
        while backlog > limit:
            metrics.BACKLOG_BYTES.set(backlog)
            self._health.beat()
            await asyncio.sleep(_RECHECK_SECONDS)
            backlog = await self._pipe.backlog()
        metrics.BACKLOG_BYTES.set(backlog)


_ARRAY32 = b"\xdd"  # msgpack: an array whose length follows in four bytes
