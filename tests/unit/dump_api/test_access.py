"""Who may send which requests to dump-api, and how many."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request

from databus_core.errors import InvalidSettings
from databus_core.settings import Dumps
from databus_dump_api.access import Access, require_protection
from databus_dump_api.limits import TokenBuckets

READ, WRITE = "key-to-read", "key-to-write"


@pytest.fixture
def keys(tmp_path: Path) -> list[dict[str, Any]]:
    """A key that may only read, hashed in the configuration, and one in a file that may only write."""
    (tmp_path / "key").write_text(f"{WRITE}\n")
    return [
        {"name": "reader", "sha256": sha256(READ.encode()).hexdigest()},
        {"name": "writer", "scopes": ["write"], "key_file": tmp_path / "key"},
    ]


def client(address: str = "10.0.0.1", **settings: Any) -> httpx.AsyncClient:
    """A client at an address of an application that answers every request with the client's name."""
    app = FastAPI(docs_url=None, openapi_url=None)
    app.add_middleware(Access, settings=Dumps.model_validate(settings))

    async def name(request: Request) -> str:
        return str(getattr(request.state, "client", "nobody"))

    app.add_api_route("/{path:path}", name, methods=["GET", "POST", "PUT", "DELETE"])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://dumps")


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/v1/dumps", "read"),
        ("GET", "/v1/dumps/d/files/f", "read"),
        ("POST", "/v1/dumps/d/leases", "read"),
        ("PUT", "/v1/dumps/d/leases/l", "read"),
        ("DELETE", "/v1/dumps/d/leases/l", "read"),
        ("POST", "/v1/dumps", "write"),
        ("POST", "/v1/dumps/d/cancel", "write"),
        ("DELETE", "/v1/dumps/d", "write"),
        ("PUT", "/v1/backfills/b", "write"),
    ],
)
async def test_a_key_may_do_what_its_scopes_permit(
    keys: list[dict[str, Any]], method: str, path: str, scope: str
) -> None:
    async with client(api_keys=keys) as api:
        for key, name, own in (READ, "reader", "read"), (WRITE, "writer", "write"):
            answer = await api.request(method, path, headers={"Authorization": f"Bearer {key}"})
            if own == scope:
                assert answer.json() == f"key {name}"
            else:
                assert (answer.status_code, answer.headers["Content-Type"]) == (403, "application/problem+json")
                assert answer.json()["detail"] == f"API key {name} has not the scope {scope} (dumps.api_keys)"


@pytest.mark.parametrize("header", [None, "", "Bearer ", "Bearer wrong", f"Basic {READ}", READ, "Bearer \xe9"])
async def test_without_a_valid_key_nothing_is_answered(keys: list[dict[str, Any]], header: str | None) -> None:
    async with client(api_keys=keys) as api:
        headers = {} if header is None else {"Authorization": header.encode("latin1")}
        answer = await api.get("/v1/dumps", headers=headers)  # type: ignore[arg-type]
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert READ not in answer.text


async def test_health_metrics_and_docs_need_no_key(keys: list[dict[str, Any]]) -> None:
    async with client(api_keys=keys) as api:
        for path in "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json":
            assert (await api.get(path)).json() == "nobody"


async def test_without_keys_a_page_of_another_site_changes_nothing_in_the_name_of_its_visitor() -> None:
    async with client() as api:
        for site, status in ("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200):
            answer = await api.post("/v1/dumps/d/cancel", headers={"Sec-Fetch-Site": site})
            assert answer.status_code == status, site
        assert (await api.get("/v1/dumps", headers={"Sec-Fetch-Site": "cross-site"})).status_code == 200


async def test_a_client_that_sends_too_many_requests_is_told_when_to_go_on(keys: list[dict[str, Any]]) -> None:
    async with client(api_keys=keys, requests_per_second=1) as api:
        headers = {"Authorization": f"Bearer {READ}"}
        answers = [await api.get("/v1/dumps", headers=headers) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[-1].headers["Retry-After"] == "1"
        assert answers[-1].headers["Content-Type"] == "application/problem+json"
        other = await api.post("/v1/dumps", headers={"Authorization": f"Bearer {WRITE}"})
        assert other.status_code == 200
        assert (await api.get("/metrics")).status_code == 200


async def test_wrong_keys_are_limited_by_the_address(keys: list[dict[str, Any]]) -> None:
    async with client(api_keys=keys, requests_per_second=1) as api:
        answers = [await api.get("/v1/dumps", headers={"Authorization": f"Bearer {n}"}) for n in range(3)]
        assert [answer.status_code for answer in answers] == [401, 401, 429]


def test_a_bucket_fills_up_to_two_seconds_of_requests() -> None:
    now = 0.0
    buckets = TokenBuckets(2, lambda: now)
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    now = 0.25
    assert buckets.take("a") == 0.25
    assert buckets.take("b") == 0
    now = 0.5
    assert [buckets.take("a") for _ in range(2)] == [0, 0.5]
    now = 1000
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]


def test_of_very_many_clients_only_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("databus_dump_api.limits._MAX_CLIENTS", 2)
    buckets = TokenBuckets(0.5, lambda: 0)
    assert [buckets.take(client) for client in "abab"] == [0, 0, 2, 2]
    assert [buckets.take(client) for client in "cba"] == [0, 2, 0]


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({}, False),
        ({"listen": "localhost:8080"}, False),
        ({"listen": "127.8.0.1:8080"}, False),
        ({"listen": "[::1]:8080"}, False),
        ({"listen": "0.0.0.0:8080"}, True),
        ({"listen": "[::]:8080"}, True),
        ({"listen": "10.0.0.1:8080"}, True),
        ({"listen": "dump-api:8080"}, True),
        ({"listen": "0.0.0.0:8080", "open": True}, False),
        ({"listen": "0.0.0.0:8080", "api_keys": [{"name": "a", "sha256": "0" * 64}]}, False),
    ],
)
def test_without_keys_only_this_machine_may_send_requests(settings: dict[str, Any], refused: bool) -> None:
    section = Dumps.model_validate(settings)
    if refused:
        with pytest.raises(InvalidSettings, match=r"set dumps\.api_keys, or dumps\.open: true"):
            require_protection(section)
    else:
        require_protection(section)
