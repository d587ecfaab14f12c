"""The operations page of dump-api, in Chromium, over a real API."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright, expect
from redis.asyncio import Redis

from common.connections import Execute
from databus_core.kafka_table_states import read_states
from databus_core.names import generation_key, leader_key, table_states_topic
from databus_core.table_states import (
    Backfill,
    BackfillProgress,
    TableDoubt,
    backfill_key,
    doubt_key,
    encode,
    progress_key,
)
from devstack import Server
from devstack.chromium import Chromium
from integration.dump_api import Api, create_topic, produce, serving

expect.set_options(timeout=30_000)
#: slow, because Chromium has to be fetched
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("source", ["mariadb"], indirect=True)]

KEY = "a key for this test"
DOUBT = TableDoubt(state="parked", reason="statement", text="<b>DML</b> at bin.1:4", file="bin.1", offset=4, since_us=1)


@pytest.fixture(scope="module")
async def browser(chromium: Chromium) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=chromium.program,
            env={"PATH": "/usr/bin:/bin", **chromium.environment},
            args=["--no-sandbox"],  # which root cannot have
        )
        yield launched
        await launched.close()


@pytest.fixture
async def open_page(browser: Browser) -> AsyncIterator[Callable[..., Any]]:
    """Open the page of an API, and require at the end that the browser has reported nothing."""
    complaints: list[str] = []

    @asynccontextmanager
    async def opened(api: Api, **context: Any) -> AsyncIterator[Page]:
        async with serving(api) as url:
            page = await browser.new_page(**context)
            page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(url)
            yield page
            await page.close()

    yield opened
    assert [text for text in complaints if "the server responded with a status of 4" not in text] == []


@pytest.fixture
def key(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "key").write_text(KEY)
    return {"api_keys": [{"name": "k", "scopes": ["read", "write"], "key_file": str(tmp_path / "key")}]}


@pytest.fixture
async def troubled(
    serve: Callable[..., Any], kafka: Server, redis_server: Server, schema: str, execute: Execute
) -> AsyncIterator[Api]:
    """A pipeline without a publisher whose table `t` is parked; a backfill is done, and a dump has a lease."""
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1), (2)")
    topic = table_states_topic(schema)
    await create_topic(kafka, topic)
    await produce(kafka, topic, encode(DOUBT), key=doubt_key(schema, "t"))
    await produce(kafka, topic, encode(Backfill(id="b1", schema=schema, table="done")), key=backfill_key("b1"))
    await produce(kafka, topic, encode(BackfillProgress(state="done", rows=7)), key=progress_key("b1"))
    async with serve() as api, Redis.from_url(redis_server.url) as redis:
        await redis.set(leader_key(schema, "reader"), "reader-host:1", ex=600)
        await redis.hset(generation_key(schema), "read_to", time.time_ns() // 1000 - 1_000_000_000)
        dump = await api.take_dump()
        assert (await api.post(f"/v1/dumps/{dump['id']}/leases")).status_code == 201
        yield api
        await redis.delete(generation_key(schema))


async def faults(page: Page) -> list[str]:
    """Return what axe finds wrong."""
    found = await Axe().run(page)
    return [f"{each['id']}: {node['html']}" for each in found.response["violations"] for node in each["nodes"]]


async def test_an_operator_sees_what_is_wrong_and_heals_a_table(
    troubled: Api, open_page: Callable[..., Any], schema: str
) -> None:
    async with open_page(troubled) as page:
        await expect(page.get_by_role("heading", level=1)).to_have_text(f"Databus: {schema}")
        attention = page.locator("#attention")
        await expect(attention).to_contain_text("No publisher is active.")
        await expect(attention).to_contain_text(f"Table {schema}.t is parked.")
        await expect(page.locator("#facts")).to_contain_text("reader-host:1")
        await expect(page.get_by_role("img", name="reader, age of its data")).to_have_accessible_name(
            "reader, age of its data, last five minutes: now 17 min, highest 17 min"
        )
        await expect(page.locator("#tables")).to_contain_text("<b>DML</b> at bin.1:4")  # text is never HTML

        await page.get_by_role("button", name=f"Heal {schema}.t").click()
        await page.get_by_role("dialog").get_by_role("button", name="Heal").click()
        await expect(page.locator("#notice")).to_have_text(f"A backfill of {schema}.t is requested.")
        backfill, ended = page.locator("#backfills tr").first, page.locator("#backfills tr").last
        await expect(backfill).to_contain_text("waiting")
        await expect(ended).to_contain_text(f"{schema}.done")
        await expect(ended.get_by_role("button")).to_have_count(0)
        states, _ = await read_states(troubled.settings)
        assert [(each.table, each.clean) for each in states.unfinished()] == [("t", True)]

        await backfill.get_by_role("button", name="Pause").click()
        await expect(backfill).to_contain_text("waiting (pausing)")
        await backfill.get_by_role("button", name="Resume").click()
        await expect(backfill.get_by_role("button", name="Pause")).to_be_visible()
        await backfill.get_by_role("button", name="Cancel").click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        await expect(backfill).to_contain_text("waiting (cancelling)")

        await page.get_by_role("button", name=f"Heal {schema}.t").click()
        await page.get_by_role("dialog").get_by_role("button", name="Heal").click()
        await expect(page.get_by_role("alert")).to_contain_text(f"Heal {schema}.t: ")  # it is still being cancelled


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(troubled: Api, open_page: Callable[..., Any], scheme: str) -> None:
    async with open_page(troubled, color_scheme=scheme, viewport={"width": 420, "height": 800}) as page:
        await page.get_by_role("button", name="Files").click()
        await expect(page.get_by_text("databus dump download")).to_be_visible()
        assert await faults(page) == []
        await page.get_by_role("button", name="Heal").click()
        assert await faults(page) == []


async def test_the_keyboard_is_enough(troubled: Api, open_page: Callable[..., Any], schema: str) -> None:
    async with open_page(troubled) as page:
        heal = page.get_by_role("button", name="Heal", exact=False).first
        await expect(heal).to_be_visible()
        for _ in range(9):
            await page.keyboard.press("Tab")
            if await heal.evaluate("button => button === document.activeElement"):
                break
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(heal).to_be_focused()
        before = await page.locator("#connection").text_content()
        await expect(page.locator("#connection")).not_to_have_text(str(before))  # the page has changed since then
        await expect(heal).to_be_focused()


async def test_dumps_show_their_leases_and_give_their_files(
    serve: Callable[..., Any], open_page: Callable[..., Any], execute: Execute, key: dict[str, Any]
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1), (2)")
    async with serve(dumps=key) as api:
        api.headers["Authorization"] = f"Bearer {KEY}"
        dump = await api.take_dump()
        await api.post(f"/v1/dumps/{dump['id']}/leases")
        async with open_page(api) as page:
            await page.get_by_label("API key").fill(KEY)
            await page.keyboard.press("Enter")
            cells = page.locator("#dumps tr").first.get_by_role("cell")
            await expect(cells).to_contain_text(["complete", "", "1", "2", "B", "1", ""])
            await page.get_by_role("button", name="Files").click()
            async with page.expect_download() as download:
                await page.get_by_role("button", name="Download").click()
            (file,) = dump["files"]
            assert (await (await download.value).path()).stat().st_size == file["bytes"]


async def test_a_key_is_asked_for_and_kept_until_the_tab_is_closed(
    serve: Callable[..., Any], open_page: Callable[..., Any], key: dict[str, Any]
) -> None:
    async with serve(dumps=key) as api, open_page(api) as page:
        urls: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        await expect(page.get_by_label("API key")).to_be_focused()
        assert await faults(page) == []
        await page.keyboard.type("wrong")
        await page.keyboard.press("Enter")
        await expect(page.locator("#key-refused")).to_have_text("This key is refused.")
        await page.get_by_label("API key").fill(KEY)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("#operations")).to_be_visible()
        await expect(page.get_by_label("API key")).to_be_hidden()
        await page.reload()
        await expect(page.locator("#operations")).to_be_visible()
        assert await page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 1, ""]
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("API key")).to_be_visible()
        assert await page.evaluate("sessionStorage.length") == 0
        assert [url for url in urls if "key" in url.rpartition("/page/")[0]] == []


async def test_a_page_that_is_cut_off_says_so_and_comes_back(api: Api, open_page: Callable[..., Any]) -> None:
    async with open_page(api) as page:
        await expect(page.locator("#connection")).to_contain_text("live")
        await page.route(
            "**/v1/pipeline/events", lambda route: route.fulfill(body="", content_type="text/event-stream")
        )
        await page.reload()
        await expect(page.get_by_role("alert").last).to_contain_text("not up to date")
        await expect(page.locator("#connection")).to_contain_text("not connected")
        await page.unroute("**/v1/pipeline/events")
        await expect(page.locator("#notice")).to_have_text("Connected again.")
        await expect(page.locator("#connection")).to_contain_text("live")


async def test_a_dependency_that_is_away_is_named_once(api: Api, open_page: Callable[..., Any]) -> None:
    api.settings.kafka.bootstrap_servers[:] = ["127.0.0.1:1"]
    async with open_page(api) as page:
        attention = page.locator("#attention li", has_text="127.0.0.1:1")
        await expect(attention).to_have_count(1)
        await expect(attention).to_contain_text(
            "backfills, dead letters, ended backfills, lag, progress, skips, tables"
        )
        publisher = page.get_by_role("img", name="publisher, age of its data")
        await expect(publisher).to_have_accessible_name(
            "publisher, age of its data, last five minutes: now not known, highest not known"
        )


async def test_browsers_keep_files_but_ask_whether_they_are_new(api: Api) -> None:
    page = await api.get("/")
    assert "script-src 'self'; style-src 'self'" in page.headers["Content-Security-Policy"]
    assert not {"<style", "style=", "onclick", "http:", "https:"} & set(page.text.split('"'))
    script = await api.get("/page/app.js")
    assert (script.headers["Content-Type"], script.headers["Cache-Control"]) == (
        "text/javascript; charset=utf-8",
        "no-cache",
    )
    again = await api.get("/page/app.js", headers={"If-None-Match": script.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "Content-Security-Policy" in again.headers
    missing = await api.get("/page/../app.py")
    assert (missing.status_code, missing.headers["Content-Type"]) == (404, "application/problem+json")
