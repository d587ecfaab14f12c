"""What an error in a request shows to a client of dump-api, in `/readyz`, and in the log."""

import httpx
import pytest
from fastapi import FastAPI

from databus_core.errors import (
    BackfillConflict,
    BackfillRefused,
    DatabusError,
    FatalError,
    KafkaUnavailable,
    PipelineNotStarted,
    UnknownBackfill,
)
from databus_core.log_events import LogEvent
from databus_core.runtime import Health
from databus_core.settings import TablePattern
from databus_dump_api import problems


async def get(error: Exception, health: Health) -> httpx.Response:
    """Send a request whose handling fails with this error."""
    app = FastAPI()
    problems.install(app, health)

    @app.get("/v1/dumps")
    async def broken() -> None:
        raise error

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://dumps") as client:
        return await client.get("/v1/dumps")


async def test_an_unknown_error_is_logged_and_answered_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    answer = await get(ValueError("secret row"), Health())
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, problems.MEDIA_TYPE)
    assert "secret" not in answer.text
    (record,) = (record for record in caplog.records if record.name.startswith("databus"))
    assert record.event is LogEvent.REQUEST_FAILED
    assert record.getMessage() == "GET /v1/dumps failed with an unknown error"


async def test_an_invalid_request_is_answered_in_our_words() -> None:
    app = FastAPI()
    problems.install(app, Health())

    @app.post("/v1/dumps")
    async def request(tables: list[TablePattern]) -> None: ...

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://dumps") as client:
        answer = await client.post("/v1/dumps", json=["customers"])
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("body.0: must be schema.table, where")


@pytest.mark.parametrize(
    ("error", "status", "dependency"),
    [
        (KafkaUnavailable("no broker answers"), 503, "kafka"),
        (problems.StorageUnavailable("read-only"), 503, "storage"),
        (problems.StorageFull("no space"), 507, "storage"),
        (PipelineNotStarted("start it"), 503, None),
        (BackfillRefused("no such table"), 422, None),
        (BackfillConflict("it is being loaded"), 409, None),
        (UnknownBackfill("no such backfill"), 404, None),
        (FatalError("refused"), 503, None),
        (problems.UnknownDump("no such dump"), 404, None),
    ],
)
async def test_a_dependency_that_fails_a_request_is_logged_once_and_makes_the_service_not_ready(
    error: DatabusError, status: int, dependency: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    health = Health()
    health.up()
    for _ in range(2):
        answer = await get(error, health)
        assert (answer.status_code, answer.json()["detail"]) == (status, str(error))
    lost = [record.fields["dependency"] for record in caplog.records if record.name.startswith("databus")]
    assert (lost, health.ready) == (([dependency], False) if dependency else ([], True))
