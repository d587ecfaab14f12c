"""What bounds readers of tables: rows per second, and the lag of replicas."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from databus_changes.snapshot import limits as module
from databus_changes.snapshot.limits import ReadLimits
from databus_core.errors import SourceUnavailable
from databus_core.settings import Source


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


def limits_of(*hosts: str, rows_per_second: int | None = None, replica_lag: float = 0.0) -> ReadLimits:
    source = Source.model_validate({"hosts": hosts or ["db1:3306"]})
    return ReadLimits(source, "dumps", rows_per_second=rows_per_second, replica_lag=replica_lag)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(module.asyncio, "sleep", clock.sleep)
    return clock


async def test_rows_that_were_read_take_their_time(clock: Clock) -> None:
    limits = limits_of(rows_per_second=100)
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
    limits = limits_of()
    limits.count(10**9)
    await limits.wait()
    assert clock.slept == [0.0]


class Replica:
    def __init__(self, lag: float) -> None:
        self.lag = lag

    async def replica_lag(self) -> float:
        return self.lag


async def test_reading_waits_while_a_replica_is_too_far_behind(
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
    limits = limits_of("db1:3306", "db2:3306", "away:3306", replica_lag=30)
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


@pytest.mark.parametrize(("hosts", "lag"), [(["db1:3306"], 30.0), (["db1:3306", "db2:3306"], 0.0)])
async def test_replicas_are_not_watched_without_need(hosts: list[str], lag: float) -> None:
    limits = limits_of(*hosts, replica_lag=lag)
    await limits.watch()
    await limits.wait()
