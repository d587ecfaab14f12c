"""Read something for many viewers at once."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")

#: seconds between the beginnings of two reads; after one that takes longer than half of it, they are further apart
_PERIOD_SECONDS = 1.0


class SharedRead(Generic[T]):
    """Calls `read` at most once a second, for all viewers together, and never while there are none."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._reading: asyncio.Task[T] | None = None
        #: viewers that wait for the result
        self._waiting = 0
        #: when the next read may begin, on the monotonic clock
        self._next = 0.0

    async def next(self) -> T:
        """Wait for the next result."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_in_time())
        reading = self._reading
        self._waiting += 1
        try:
            return await asyncio.shield(reading)
        finally:
            self._waiting -= 1
            if not self._waiting:
                reading.cancel()
            if self._reading is reading and (reading.done() or not self._waiting):
                self._reading = None

    async def _read_in_time(self) -> T:
        await asyncio.sleep(self._next - monotonic())
        began = monotonic()
        try:
            return await self._read()
        finally:
            took = monotonic() - began
            self._next = began + max(_PERIOD_SECONDS, 2 * took)
