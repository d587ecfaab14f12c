"""How a service's work is retried, checked for progress, and ended."""

import asyncio
import time

import httpx
import pytest
from starlette.applications import Starlette

from databus_core import runtime
from databus_core.errors import FatalError, KafkaUnavailable, LeadershipLost, RedisUnavailable
from databus_core.log_events import LogEvent
from databus_core.runtime import Health, health_routes, uninterrupted
from databus_core.settings import Settings
from databus_publisher import service as publisher
from databus_reader import service as reader


async def test_a_service_is_alive_while_its_work_takes_steps() -> None:
    health = Health()
    app = httpx.ASGITransport(Starlette(routes=health_routes(health, "reader", "shop")))
    async with httpx.AsyncClient(transport=app, base_url="http://service") as client:
        assert (await client.get("/healthz")).status_code == 200
        health.down("Kafka is unavailable")
        health.beat()
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).text == "Kafka is unavailable\n"
        health.step = time.monotonic() - 3600
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.text) == (503, "stuck\n")


@pytest.mark.parametrize("reports_steps", [True, False])
async def test_only_work_that_reports_steps_counts_as_stuck_long_after_a_retry(
    reports_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def work(_: Settings, health: Health) -> None:
        nonlocal tries
        tries += 1
        if reports_steps:
            health.beat()
        if tries == 1:
            raise KafkaUnavailable("no broker answers")

    monkeypatch.setattr(runtime, "_FIRST_PAUSE", 0)
    monkeypatch.setattr(runtime, "_STUCK_SECONDS", 0)
    health = Health()
    await runtime.retrying(work, Settings(name="shop"), health)
    assert health.alive is not reports_steps


async def test_a_retry_counts_as_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health()

    async def work(_: Settings, health: Health) -> None:
        if health.step is None:
            health.step = time.monotonic() - 3600
            raise KafkaUnavailable("no broker answers")

    monkeypatch.setattr(runtime, "_FIRST_PAUSE", 0)
    await runtime.retrying(work, Settings(name="shop"), health)
    assert health.alive


@pytest.mark.parametrize("run", [reader.run, publisher.run])
async def test_reader_and_publisher_report_steps_from_their_start(run: runtime.Work) -> None:
    settings = Settings.model_validate({"name": "shop", "redis": {"url": "redis://127.0.0.1:1/0"}})
    health = Health()
    with pytest.raises(RedisUnavailable):
        await run(settings, health)
    assert health.step is not None


async def test_a_cancelled_task_finishes_its_step_first() -> None:
    begun, go_on, finished = asyncio.Event(), asyncio.Event(), False

    async def step() -> None:
        nonlocal finished
        begun.set()
        await go_on.wait()
        finished = True

    task = asyncio.create_task(uninterrupted(step()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished


async def test_a_second_cancellation_interrupts_a_step() -> None:
    begun = asyncio.Event()

    async def step() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(uninterrupted(step()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_unknown_error_of_the_last_step_is_logged_without_its_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def step() -> None:
        await asyncio.sleep(0)
        raise ValueError("secret row")

    task = asyncio.create_task(uninterrupted(step()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caplog.messages == ["the current step failed while stopping: ValueError"]


async def test_a_cancelled_task_ends_even_if_its_last_step_fails(caplog: pytest.LogCaptureFixture) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def step() -> None:
        begun.set()
        await go_on.wait()
        raise FatalError("no")

    task = asyncio.create_task(uninterrupted(step()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "the current step failed while stopping: no" in caplog.text


@pytest.mark.parametrize(
    ("ready_seconds", "pauses"),
    [(0.0, [0.5, 1.0, 2.0, 4.0]), (3600.0, [0.5, 0.5, 0.5, 0.5])],
    ids=["ready for a moment", "ready for an hour"],
)
async def test_pauses_between_retries_grow_until_the_work_is_ready_for_longer_than_the_next_pause(
    ready_seconds: float, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def work(_: Settings, health: Health) -> None:
        if len(slept) == len(pauses):
            return
        health.up()
        health.since -= ready_seconds
        raise KafkaUnavailable("no broker answers")

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await runtime.retrying(work, Settings(name="shop"), Health())
    assert slept == pauses


async def test_pauses_are_short_while_the_storage_of_the_lease_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no standby could take over soon after it is back."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def work(_: Settings, health: Health) -> None:
        if len(slept) < 7:
            raise RedisUnavailable("Redis is unavailable") if len(slept) > 1 else KafkaUnavailable("no broker answers")

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await runtime.retrying(work, Settings(name="shop"), Health())
    assert slept == [0.5, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]


async def test_a_standby_that_had_recovered_pauses_briefly_when_it_fails_as_the_active_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def work(_: Settings, health: Health) -> None:
        if len(slept) == 6:
            return
        if len(slept) == 4:
            health.stand_by("standby: another replica is the active publisher")
            health.since -= 3600
            health.down("becoming the active publisher")
        raise KafkaUnavailable("no broker answers")

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await runtime.retrying(work, Settings(name="shop"), Health())
    assert slept == [0.5, 1.0, 2.0, 4.0, 0.5, 1.0]


async def test_an_outage_is_logged_once_however_often_the_work_is_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    tries = 0

    async def work(_: Settings, health: Health) -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            health.stand_by("standby")  # needs no Kafka, so Kafka may still be unavailable
        if tries < 5:
            raise KafkaUnavailable(f"no broker answers at try {tries}")
        health.up()

    monkeypatch.setattr(runtime, "_FIRST_PAUSE", 0)
    health = Health()
    await runtime.retrying(work, Settings(name="shop"), health)
    assert [record.event for record in caplog.records] == [LogEvent.DEPENDENCY_LOST, LogEvent.DEPENDENCY_BACK]
    assert "at try 1" in caplog.messages[0]


async def test_a_lost_leadership_is_not_logged_as_an_outage(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = 0

    async def work(_: Settings, health: Health) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise LeadershipLost("another replica has taken the lease")
        health.up()

    monkeypatch.setattr(runtime, "_FIRST_PAUSE", 0)
    await runtime.retrying(work, Settings(name="shop"), Health())
    assert [record.event for record in caplog.records] == [LogEvent.LEADERSHIP_LOST]
