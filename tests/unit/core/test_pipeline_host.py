"""Which of several hosts dumps and requests of backfills use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from databus_core import pipeline_host
from databus_core.errors import DatabusError, SourceNotReady, SourceUnavailable
from databus_core.progress import Progress
from databus_core.settings import Source

NOT_READY = SourceNotReady("database a:1: the user lacks a privilege")
AWAY = SourceUnavailable("database a:1: connection refused", "a:1")


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> dict[str, DatabusError | str]:
    """What the connection to each host leads to: an error, or the identity of the server."""
    outcomes: dict[str, DatabusError | str] = {}

    @asynccontextmanager
    async def connect_source(_: Source, host: str) -> AsyncIterator[Any]:
        outcome = outcomes[host]
        if isinstance(outcome, DatabusError):
            raise outcome
        yield SimpleNamespace(server=SimpleNamespace(identity=outcome))

    monkeypatch.setattr(pipeline_host, "connect_source", connect_source)
    return outcomes


async def host_of(*hosts: str) -> str:
    settings = Source.model_validate({"hosts": list(hosts)})
    async with pipeline_host.connect_pipeline_host(settings, Progress(server="wanted")) as (host, _):
        return host


@pytest.mark.parametrize("first", [NOT_READY, AWAY, "another"])
async def test_a_host_that_cannot_be_used_is_passed_over(
    connect: dict[str, DatabusError | str], first: DatabusError | str
) -> None:
    connect |= {"a:1": first, "b:1": "wanted"}
    assert await host_of("a:1", "b:1") == "b:1"


@pytest.mark.parametrize(
    ("second", "error"), [(NOT_READY, SourceNotReady), (AWAY, SourceUnavailable), ("another", SourceUnavailable)]
)
async def test_the_error_names_the_fault_of_each_host_and_is_final_if_all_are(
    connect: dict[str, DatabusError | str], second: DatabusError | str, error: type[DatabusError]
) -> None:
    connect |= {"a:1": NOT_READY, "b:1": second}
    with pytest.raises(error, match="lacks a privilege; database"):
        await host_of("a:1", "b:1")
