"""An iteration ends when it is closed, whoever has it then."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from databus.iteration import Iteration


class Numbers:
    """Yields 1 and 2, and then nothing more."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.waits, self.closed = asyncio.Event(), asyncio.Event()
        #: whether the first cancellation is swallowed, as Kafka's client may do
        self._is_deaf = deaf

    async def __call__(self) -> AsyncGenerator[int]:
        try:
            yield 1
            yield 2
            self.waits.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self._is_deaf:
                    raise
            yield 3
        finally:
            await asyncio.sleep(0)  # closing connections takes a moment
            self.closed.set()


async def read(iteration: Iteration[int]) -> list[int]:
    return [item async for item in iteration.items()]


async def test_closing_ends_the_loop_of_a_task_that_has_swallowed_a_cancellation_before() -> None:
    numbers = Numbers()
    iteration = Iteration(numbers())

    async def read_on() -> list[int]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await read(iteration)
        return []

    reading = asyncio.create_task(read_on())
    await asyncio.sleep(0)
    reading.cancel()
    await numbers.waits.wait()
    async with asyncio.timeout(5):
        await iteration.close()
    assert await reading == [1, 2]


@pytest.mark.parametrize("deaf", [False, True])
async def test_closing_ends_the_loop_of_another_task_that_waits(deaf: bool) -> None:
    numbers, among = Numbers(deaf=deaf), set[Iteration[Any]]()
    iteration = Iteration(numbers(), among)
    reading = asyncio.create_task(read(iteration))
    await numbers.waits.wait()
    assert among == {iteration}
    await iteration.close()
    assert (numbers.closed.is_set(), among) == (True, set())
    assert await reading == [1, 2]
    assert not reading.cancelling()


async def test_closing_ends_a_loop_that_is_busy_at_its_next_step() -> None:
    numbers = Numbers()
    iteration = Iteration(numbers())
    found = []
    async with asyncio.TaskGroup() as tasks:
        async for item in iteration.items():
            found.append(item)
            tasks.create_task(iteration.close())
            await asyncio.sleep(0)  # closing has begun, and not ended
    assert (found, numbers.closed.is_set()) == ([1], True)


async def test_a_cancellation_by_somebody_else_is_one() -> None:
    numbers = Numbers()
    reading = asyncio.create_task(read(iteration := Iteration(numbers())))
    await numbers.waits.wait()
    reading.cancel()
    closing = asyncio.create_task(iteration.close())
    with pytest.raises(asyncio.CancelledError):
        await reading
    await closing
    assert numbers.closed.is_set()


async def test_a_loop_that_is_left_is_closed_soon() -> None:
    numbers = Numbers()
    async for item in Iteration(numbers()).items():
        assert item == 1
        break
    gc.collect()
    async with asyncio.timeout(10):
        await numbers.closed.wait()
