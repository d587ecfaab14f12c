"""Collect events into entries of about 256 KB and append them to the pipe, no faster than the publisher takes them.

While one entry is being appended, the next is collected. There are never more than these two, so memory is bounded.
"""

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Self

from databus_core.cancellation import raise_if_cancelled
from databus_core.events import Event, encode_events
from databus_core.metrics import reader as metrics
from databus_core.pipe import ReaderEnd
from databus_core.runtime import Health

#: An entry is complete at this size. A round trip costs as much as 100 KB of rows; larger entries need more memory.
ENTRY_BYTES = 256 * 1024
_RECHECK_SECONDS = 0.05


class EntryWriter:
    """Appends events as entries, and makes the reader wait while the backlog is over its limit."""

    def __init__(self, pipe: ReaderEnd, backlog_limit: int, health: Health) -> None:
        self._pipe = pipe
        self._health = health
        self._limit = backlog_limit
        self._encoded: list[bytes] = []
        self._events = self._size = 0
        self._appending: asyncio.Task[None] | None = None
        #: everything that was committed before this moment was written, in µs since the epoch; 0: not known
        self._read_to_us = 0
        metrics.BACKLOG_LIMIT_BYTES.set(backlog_limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Discard the collected events, and cancel the running append."""
        if task := self._appending:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def write(self, events: Iterable[Event]) -> None:
        """Collect events, and append each entry that is complete."""
        remaining = iter(events)
        while chunk := list(islice(remaining, _FIXARRAY_MAX)):
            encoded = encode_events(chunk)
            await self._collect(encoded[1:], len(chunk))  # without the header of the chunk's array: one byte

    @property
    def room(self) -> int:
        """How many bytes are missing until the next entry is complete."""
        return ENTRY_BYTES - self._size

    async def write_encoded(self, encoded: bytes, events: int) -> None:
        """Collect events in msgpack, without the header of an array; append the entry if it is complete."""
        await self._collect(encoded, events)

    async def _collect(self, encoded: bytes, events: int) -> None:
        self._encoded.append(encoded)
        self._events += events
        self._size += len(encoded)
        if self._size >= ENTRY_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Start to append the collected events as one entry, after the previous append. Raises that append's error."""
        if not self._events:
            if self._appending and self._appending.done():
                await self._appending  # raises its error now, because there may be no later append
            return
        payload = b"".join((_ARRAY32, self._events.to_bytes(4, "big"), *self._encoded))
        self._encoded, self._events, self._size = [], 0, 0
        await self._finish_append()
        self._appending = asyncio.create_task(self._append(payload, self._read_to_us))

    def has_read_to(self, time_us: int) -> None:
        """Note that everything that was committed before this moment was written, in µs since the epoch."""
        self._read_to_us = time_us

    async def report(self) -> None:
        """Report to the publisher how far the reader has read, while there is nothing to append.

        Raises GenerationLost if the generation has ended: while the source is idle, no append would notice it.
        """
        appended = not self._events and (self._appending is None or self._appending.done())
        metrics.BACKLOG_BYTES.set(await self._pipe.backlog(self._read_to_us if appended else None))
        if appended:
            metrics.FRESHNESS.complete(self._read_to_us / 1e6)

    async def wait_until_published(self) -> None:
        """Wait until the publisher has published everything that was flushed."""
        await self._finish_append()
        await self._wait_for_backlog(0, await self._pipe.backlog())

    async def _append(self, payload: bytes, read_to_us: int) -> None:
        backlog = await self._pipe.append(payload, read_to_us)
        if read_to_us:
            metrics.FRESHNESS.complete(read_to_us / 1e6)
        await self._wait_for_backlog(self._limit, backlog)

    async def _finish_append(self) -> None:
        if self._appending:
            await self._appending

    async def _wait_for_backlog(self, limit: int, backlog: int) -> None:
        """Wait until the backlog, which is `backlog` bytes now, is at most `limit`."""
        self._health.beat()  # loading a whole table, which is one step, may take long
        while backlog > limit:
            raise_if_cancelled()
            metrics.BACKLOG_BYTES.set(backlog)
            self._health.beat()
            await asyncio.sleep(_RECHECK_SECONDS)
            backlog = await self._pipe.backlog()
        metrics.BACKLOG_BYTES.set(backlog)


_ARRAY32 = b"\xdd"  # msgpack: an array whose length follows in four bytes
_FIXARRAY_MAX = 15  # msgpack: the longest array with a header of one byte
