"""Work in the background that is repeated at an interval."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress


class Periodic:
    """Begins work at an interval, the first time after one; it does not begin before the last run has ended."""

    def __init__(self, interval: float, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """`interval` is in seconds; 0: never."""
        self._interval = interval or math.inf
        self._work = work
        #: when the next run begins, on the monotonic clock
        self._next = time.monotonic() + self._interval
        self._running: asyncio.Task[None] | None = None

    def step(self) -> None:
        """Begin a run if it is time. Raises the error of the last one."""
        if self._running and self._running.done():
            done, self._running = self._running, None
            done.result()
        if self._running is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._interval
            self._running = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Stop the work."""
        if self._running:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
