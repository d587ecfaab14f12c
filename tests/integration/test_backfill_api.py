"""The routes of dump-api for backfills."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from common.connections import Execute
from databus_core.table_states import decode_states
from devstack import Server
from integration.backfills import Requests, make_requests
from integration.dump_api import Api

URL = "/v1/backfills"


@pytest.fixture
def source(mariadb: Server) -> Server:
    """What depends on the kind of database is tested with the command line."""
    return mariadb


@pytest.fixture
async def requests(source: Server, kafka: Server, schema: str, execute: Execute, tmp_path: Path) -> Requests:
    """The pipeline that `api` serves, with the tables items and orders."""
    for table in ("orders", "items"):
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    requests = make_requests(source, kafka, schema, tmp_path)
    await requests.begin()
    return requests


@pytest.fixture
async def api(requests: Requests, serve: Callable[..., Any]) -> AsyncIterator[Api]:
    async with serve(started=False) as running:
        yield running


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return status and detail of a problem document."""
    assert answer.headers["Content-Type"] == "application/problem+json"
    return answer.status_code, answer.json()["detail"]


async def test_backfills_that_are_requested_again_with_their_key_are_the_same(
    api: Api, requests: Requests, schema: str
) -> None:
    headers, body = {"Idempotency-Key": "k"}, {"tables": [f"{schema}.*"]}
    first = await api.post(URL, json=body, headers=headers)
    again = await api.post(URL, json=body, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert (await api.get(URL)).json() == first.json()
    other, detail = problem(await api.post(URL, json=body | {"clean": True}, headers=headers))
    assert (other, "was sent with another body" in detail) == (422, True)


async def test_requested_backfills_can_be_listed_and_shown(api: Api, requests: Requests, schema: str) -> None:
    body = {"tables": [f"{schema}.*"], "where": "id > 1", "output": "default", "any_size": True}
    answer = await api.post(URL, json=body)
    assert answer.status_code == 202
    orders, items = answer.json()["backfills"]
    assert (orders["table"], items["table"]) == ("orders", "items")
    assert {name: orders[name] for name in ("state", "wanted", "where", "output", "any_size", "clean", "rows")} == {
        "state": "waiting", "wanted": "run", "where": "id > 1", "output": "default", "any_size": True, "clean": False,
        "rows": 0,
    }  # fmt: skip
    assert decode_states((await requests.records()).items()).backfills.keys() == {orders["id"], items["id"]}
    assert (await api.get(URL)).json() == answer.json()
    await requests.reach(items["id"], state="running", rows=7, estimate=9)
    shown = (await api.get(f"{URL}/{items['id']}")).json()
    assert (shown["state"], shown["rows"], shown["estimate"]) == ("running", 7, 9)


async def test_a_backfill_is_paused_resumed_and_cancelled(api: Api, requests: Requests) -> None:
    await requests.request("a0", "orders", where="id > 1")
    for wanted in ("pause", "run", "cancel"):
        answer = await api.put(f"{URL}/a0", json={"wanted": wanted})
        assert (answer.status_code, answer.json()["wanted"], answer.json()["where"]) == (200, wanted, "id > 1")
        [found] = decode_states((await requests.records()).items()).backfills.values()
        assert found.wanted == wanted
    text = f"backfill a0 of {requests.settings.name}.orders is being cancelled"
    assert problem(await api.put(f"{URL}/a0", json={"wanted": "run"})) == (409, text)
    await requests.reach("a0", state="cancelled")
    text = f"backfill a0 of {requests.settings.name}.orders has ended: cancelled"
    assert problem(await api.put(f"{URL}/a0", json={"wanted": "cancel"})) == (409, text)


async def test_all_faults_of_a_request_are_in_one_problem_and_nothing_is_requested(
    api: Api, requests: Requests, schema: str
) -> None:
    tables = [f"{schema}.missing", f"{schema}.hidden", f"{schema}.items"]
    answer = await api.post(URL, json={"tables": tables, "where": "id >"})
    status, detail = problem(answer)
    first, second, third = detail.splitlines()
    assert status == 422
    assert first.startswith(f"table {schema}.hidden is not captured: ")
    assert second == f"table {schema}.missing does not exist: check the name"
    assert third.startswith(f"table {schema}.items: the condition is refused: ")
    assert await requests.records() == {}


async def test_a_table_that_is_being_loaded_is_a_conflict(api: Api, requests: Requests, schema: str) -> None:
    await requests.request("a0", "items")
    text = f"table {schema}.items has backfill a0 (waiting): let it end, or cancel it"
    assert problem(await api.post(URL, json={"tables": [f"{schema}.*"]})) == (409, text)
    status, detail = problem(await api.post(URL, json={"tables": [f"{schema}.items", f"{schema}.no"]}))
    assert (status, len(detail.splitlines())) == (422, 2)
    assert decode_states((await requests.records()).items()).backfills.keys() == {"a0"}


@pytest.mark.parametrize("name", ["a9", "*.*", "{schema}.items"])
async def test_only_the_id_of_a_backfill_names_it(api: Api, requests: Requests, schema: str, name: str) -> None:
    await requests.request("a0", "items")
    before = await requests.records()
    url, text = f"{URL}/{name.format(schema=schema)}", f"there is no backfill {name.format(schema=schema)}"
    assert problem(await api.get(url)) == (404, text)
    assert problem(await api.put(url, json={"wanted": "cancel"})) == (404, text)
    assert await requests.records() == before


@pytest.mark.parametrize(
    "body",
    [{}, {"tables": []}, {"tables": ["items"]}, {"tables": ["a.b"], "cause": "heal"}, {"tables": ["a.b"] * 1001}],
)
async def test_a_malformed_request_gets_a_problem_document(api: Api, requests: Requests, body: object) -> None:
    status, detail = problem(await api.post(URL, json=body))
    assert (status, detail[:4]) == (422, "body")
    assert await requests.records() == {}


async def test_a_backfill_cannot_be_made_to_do_anything_else(api: Api, requests: Requests) -> None:
    await requests.request("a0", "items")
    status, detail = problem(await api.put(f"{URL}/a0", json={"wanted": "waiting"}))
    assert (status, detail) == (422, "body.wanted: Input should be 'run', 'pause' or 'cancel'")


async def test_a_page_of_another_site_cannot_request_or_change_backfills(
    api: Api, requests: Requests, schema: str
) -> None:
    await requests.request("a0", "orders")
    before = await requests.records()
    headers = {"Content-Type": "text/plain"}
    for answer in (
        await api.post(URL, content=f'{{"tables": ["{schema}.items"]}}', headers=headers),
        await api.put(f"{URL}/a0", content='{"wanted": "cancel"}', headers=headers),
    ):
        assert problem(answer)[0] == 415
    assert await requests.records() == before


async def test_a_pipeline_that_has_not_begun_is_not_ready_for_requests(serve: Callable[..., Any], schema: str) -> None:
    async with serve(started=False) as api:
        answer = await api.post(URL, json={"tables": [f"{schema}.items"]})
        text = f"pipeline {schema} has not begun: start reader and publisher, then request the backfill again"
        assert problem(answer) == (503, text)
        assert answer.headers["Retry-After"] == "5"
        assert (await api.get(URL)).json() == {"backfills": []}
