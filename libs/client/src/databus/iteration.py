"""An iteration that can be closed at any time, also while another task waits for its next item."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Iteration(Generic[T]):
    """Yields the items of a generator until it is closed. While it is open, it is in the sets `among`."""

    def __init__(self, generator: AsyncGenerator[T], *among: "set[Iteration[Any]]") -> None:
        self._generator = generator
        self._among = among
        for each in among:
            each.add(self)
        #: the task that waits for the next item
        self._waiting: asyncio.Task[Any] | None = None
        #: how often that task had been cancelled when it began to wait; it may have swallowed that
        self._cancelled = 0
        self._is_closing = False
        #: whether `close` has cancelled that task
        self._is_interrupted = False
        self._one_ends_it, self._ended = asyncio.Lock(), asyncio.Event()

    async def items(self) -> AsyncGenerator[T]:
        """Yield the items. Ends, without an error, when the iteration is closed."""
        try:
            while not self._is_closing:
                self._waiting = task = asyncio.current_task()
                self._cancelled = task.cancelling() if task else 0
                try:
                    item = await anext(self._generator)
                except asyncio.CancelledError:
                    if not self._is_interrupted or (task and task.uncancel() > self._cancelled):  # by others, too
                        raise
                    return
                finally:
                    self._waiting = None
                if self._is_interrupted and task:  # Kafka's client can swallow it
                    task.uncancel()
                    return
                yield item
        finally:
            await self._end()

    async def close(self) -> None:
        """End the iteration, and release what it uses."""
        self._is_closing = True
        if not self._waiting:
            await self._end()
            return
        if self._waiting.cancelling() == self._cancelled:
            self._is_interrupted = self._waiting.cancel()
        await self._ended.wait()

    async def _end(self) -> None:
        async with self._one_ends_it:
            try:
                await self._generator.aclose()
            finally:
                for each in self._among:
                    each.discard(self)
                self._ended.set()
