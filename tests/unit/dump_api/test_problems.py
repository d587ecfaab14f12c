"""What an error shows to a client of dump-api, and in the log."""

import httpx
import pytest
from fastapi import FastAPI

from databus.log_events import LogEvent
from databus.runtime import Health
from databus.settings import TablePattern
from databus_dump_api import problems


async def test_an_unknown_error_is_logged_and_answered_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()
    problems.install(app, Health())

    @app.get("/v1/dumps")
    async def broken() -> None:
        raise ValueError("secret row")

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://dumps") as client:
        answer = await client.get("/v1/dumps")
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, problems.MEDIA_TYPE)
    assert "secret" not in answer.text
    (record,) = (record for record in caplog.records if record.name.startswith("databus"))
    assert record.event is LogEvent.REQUEST_FAILED
    assert record.getMessage() == "GET /v1/dumps failed with an unknown error"


async def test_an_invalid_request_is_answered_in_our_words() -> None:
    app = FastAPI()
    problems.install(app)

    @app.post("/v1/dumps")
    async def request(tables: list[TablePattern]) -> None: ...

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://dumps") as client:
        answer = await client.post("/v1/dumps", json=["customers"])
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("body.0: must be schema.table, where")
