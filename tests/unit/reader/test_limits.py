"""What bounds backfills: rows per second, the lag of replicas, and what waits to be published."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from databus_core.errors import SourceUnavailable
from databus_core.settings import Settings
from databus_reader.backfill import limits as module
from unit.reader.backfilled import EmptyPipe, limits_of, settings


class Clock:
    """The time, which passes only in sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(module.asyncio, "sleep", clock.sleep)
    return clock


async def test_rows_that_were_read_take_their_time(clock: Clock) -> None:
    limits = limits_of(settings(backfill={"rows_per_second": 100}))
    assert limits.chunk_rows == 25
    await limits.wait()
    limits.count(25)
    limits.count(25)  # of another table
    await limits.wait()
    assert clock.slept == [0.0, 0.5]
    clock.now += 60  # what was not read then is not read at once now
    limits.count(10)
    await limits.wait()
    assert clock.slept[-1] == pytest.approx(0.1)


async def test_without_a_limit_nothing_waits(clock: Clock) -> None:
    limits = limits_of(settings())
    limits.count(10**9)
    await limits.wait()
    assert clock.slept == [0.0]
    assert limits.chunk_rows > 10**9


def test_a_chunk_has_at_least_one_row() -> None:
    assert limits_of(settings(backfill={"rows_per_second": 1})).chunk_rows == 1


async def test_no_chunk_is_read_while_much_waits_to_be_published(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [2**20, 2**16 + 1, 2**16]

    async def backlog(_: EmptyPipe) -> int:
        return waiting.pop(0)

    monkeypatch.setattr(EmptyPipe, "backlog", backlog)
    await limits_of(settings()).wait()
    assert not waiting


class Replica:
    def __init__(self, lag: float) -> None:
        self.lag = lag

    async def replica_lag(self) -> float:
        return self.lag


async def test_backfills_wait_while_a_replica_is_too_far_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    replicas, check = {"db1:3306": Replica(0), "db2:3306": Replica(31)}, asyncio.Event()

    @asynccontextmanager
    async def connect_source(source: object, host: str) -> AsyncIterator[Replica]:
        if host not in replicas:
            raise SourceUnavailable("away", host)
        yield replicas[host]

    sleep = asyncio.sleep

    async def next_check(seconds: float) -> None:
        if seconds:
            check.clear()
            await check.wait()

    monkeypatch.setattr(module, "connect_source", connect_source)
    hosts = {"include": ["shop.*"], "hosts": ["db1:3306", "db2:3306", "away:3306"]}
    limits = limits_of(Settings(name="p", source=hosts, backfill={"replica_lag": 30}))
    monkeypatch.setattr(module.asyncio, "sleep", next_check)
    watching = asyncio.create_task(limits.watch())
    waiting = asyncio.create_task(limits.wait())

    async def pass_checks() -> None:
        check.set()
        for _ in range(10):
            await sleep(0)

    await pass_checks()
    waiting.cancel()
    waiting = asyncio.create_task(limits.wait())
    await pass_checks()
    assert not waiting.done()
    assert caplog.text.count("db2:3306 is 31 s behind") == 1
    replicas["db2:3306"].lag = 30
    await pass_checks()
    await waiting
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_a_single_host_is_not_watched() -> None:
    await limits_of(settings()).watch()
