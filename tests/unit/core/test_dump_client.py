"""Waiting for a dump that a program has requested."""

from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import msgspec
import pytest

from databus_core.dump_client import DumpApi
from databus_core.errors import DumpUnusable
from databus_core.manifest import Manifest, State

NOW = datetime(2026, 11, 27, tzinfo=UTC)
AWAY = httpx.ConnectError("it restarts")


def answering(monkeypatch: pytest.MonkeyPatch, *states: State | Exception) -> list[str]:
    """Let dump-api answer with a dump in each of these states; return the requests that it gets."""
    asked: list[str] = []
    found: Iterator[State | Exception] = iter(states)

    async def request(_: httpx.AsyncClient, method: str, path: str, **arguments: object) -> httpx.Response:
        asked.append(method)
        state = next(found)
        if isinstance(state, Exception):
            raise state
        manifest = Manifest(id="dump-1", pipeline="shop", state=state, created=NOW, error="why")
        return httpx.Response(
            200, content=msgspec.json.encode(manifest), request=httpx.Request(method, f"http://x{path}")
        )

    monkeypatch.setattr(httpx.AsyncClient, "request", request)
    return asked


async def test_a_restart_of_dump_api_needs_no_second_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, State.PENDING, AWAY, AWAY, State.RUNNING, AWAY, State.COMPLETE)
    async with DumpApi("http://x", poll=0) as api:
        assert (await api.take(["shop.*"])).state is State.COMPLETE
    assert asked == ["POST", "GET", "GET", "GET", "GET", "GET"]


async def test_a_dump_that_fails_is_requested_again_and_one_that_was_cancelled_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with DumpApi("http://x", poll=0) as api:
        answering(monkeypatch, State.FAILED, State.FAILED, State.COMPLETE)
        assert (await api.take(["shop.*"])).state is State.COMPLETE
        answering(monkeypatch, State.FAILED, State.FAILED, State.FAILED)
        with pytest.raises(DumpUnusable, match="dump dump-1 is failed: why"):
            await api.take(["shop.*"])
        answering(monkeypatch, State.CANCELLED)
        with pytest.raises(DumpUnusable, match="dump dump-1 is cancelled: why"):
            await api.take(["shop.*"])
