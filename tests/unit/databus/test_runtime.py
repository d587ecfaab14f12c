"""How a service's work is retried, checked for progress, and ended."""

import asyncio
import time

import httpx
import pytest
from starlette.applications import Starlette

from databus import runtime
from databus.errors import FatalError, KafkaUnavailable, LeadershipLost
from databus.log_events import LogEvent
from databus.runtime import Health, health_routes, uninterrupted
from databus.settings import Settings


async def test_a_service_is_alive_until_its_work_makes_no_progress() -> None:
    health = Health()
    app = httpx.ASGITransport(Starlette(routes=health_routes(health)))
    async with httpx.AsyncClient(transport=app, base_url="http://service") as client:
        assert (await client.get("/healthz")).status_code == 200
        health.down("Kafka is away")
        health.beat()
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).text == "Kafka is away\n"
        health.step = time.monotonic() - 3600
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.text) == (503, "stuck\n")


async def test_a_step_is_finished_before_its_task_stops() -> None:
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


async def test_an_unknown_error_at_the_stop_is_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    async def step() -> None:
        await asyncio.sleep(0)
        raise ValueError("secret row")

    task = asyncio.create_task(uninterrupted(step()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caplog.messages == ["the last step failed while stopping: ValueError"]


async def test_a_step_that_fails_does_not_keep_its_task_from_stopping(caplog: pytest.LogCaptureFixture) -> None:
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
    assert "the last step failed while stopping: no" in caplog.text


@pytest.mark.parametrize(
    ("served", "pauses"), [(0.0, [0.5, 1.0, 2.0, 4.0]), (3600.0, [0.5, 0.5, 0.5, 0.5])], ids=["a moment", "an hour"]
)
async def test_pauses_grow_until_the_work_was_ready_for_longer(
    served: float, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def work(_: Settings, health: Health) -> None:
        if len(slept) == len(pauses):
            return
        health.up()
        health.since -= served
        raise KafkaUnavailable("no broker answers")

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await runtime._retrying(work, Settings(name="shop"), Health())
    assert slept == pauses


async def test_a_dependency_is_logged_once_for_all_tries_until_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    tries = 0

    async def work(_: Settings, health: Health) -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            health.stand_by("standby")  # which says nothing of Kafka
        if tries < 5:
            raise KafkaUnavailable(f"no broker answers at try {tries}")
        health.up()

    monkeypatch.setattr(runtime, "_FIRST_PAUSE", 0)
    health = Health()
    await runtime._retrying(work, Settings(name="shop"), health)
    assert [record.event for record in caplog.records] == [LogEvent.DEPENDENCY_LOST, LogEvent.DEPENDENCY_BACK]
    assert "at try 1" in caplog.messages[0]


async def test_a_lost_leadership_is_no_outage(
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
    await runtime._retrying(work, Settings(name="shop"), Health())
    assert [record.event for record in caplog.records] == [LogEvent.LEADERSHIP_LOST]
