"""Many viewers share one read, and without viewers there is none."""

import asyncio

import pytest

from common.waiting import cancelled
from databus_dump_api import shared_read
from databus_dump_api.shared_read import SharedRead


class Counted:
    """A read whose result is its number; it ends when it is permitted."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        self.permitted = asyncio.Event()
        self.permitted.set()

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        try:
            await self.permitted.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return number


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_read, "_PERIOD_SECONDS", 0.01)


async def test_all_viewers_see_the_same_reads() -> None:
    read = Counted()
    shared = SharedRead(read)

    async def view() -> list[int]:
        return [await shared.next() for _ in range(5)]

    seen = await asyncio.gather(*(view() for _ in range(20)))
    assert seen == [[1, 2, 3, 4, 5]] * 20
    assert read.begun == 5


async def test_reads_have_a_pause() -> None:
    shared = SharedRead(Counted())
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(4):
        await shared.next()
    assert loop.time() - began >= 0.03


async def test_the_last_viewer_that_leaves_ends_the_read() -> None:
    read = Counted()
    read.permitted.clear()
    shared = SharedRead(read)
    first, second = asyncio.create_task(shared.next()), asyncio.create_task(shared.next())
    await asyncio.sleep(0.02)
    await cancelled(first)
    assert (read.begun, read.cancelled) == (1, 0)
    await cancelled(second)
    await asyncio.sleep(0)
    assert (read.begun, read.cancelled) == (1, 1)
    read.permitted.set()
    assert await shared.next() == 2


async def test_an_error_reaches_every_viewer_and_the_next_read_is_a_new_one() -> None:
    results = iter([ValueError("away"), 2])

    async def read() -> int:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    shared = SharedRead(read)
    failed = await asyncio.gather(shared.next(), shared.next(), return_exceptions=True)
    assert [str(each) for each in failed] == ["away", "away"]
    assert await shared.next() == 2
