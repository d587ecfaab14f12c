"""Waits for a state by polling, and for the end of a cancelled task."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

_PAUSE = 0.02


async def eventually(condition: Callable[[], Awaitable[T]], *, seconds: float = 60, pause: float = _PAUSE) -> T:
    """Wait until a condition holds, and return its value. Raises TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not (value := await condition()):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(pause)
    return value


async def throughout(seconds: float, condition: Callable[[], Awaitable[object]]) -> None:
    """Require a condition to hold for this many seconds, to show that something does not happen."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        assert await condition()
        await asyncio.sleep(_PAUSE)


async def cancelled(task: "asyncio.Task[Any]") -> None:
    """Cancel a task repeatedly until it has ended, as the services' runtime does.

    A single cancellation is not enough: a client that is connecting may swallow it.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=5)
