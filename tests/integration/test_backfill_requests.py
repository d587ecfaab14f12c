"""`databus backfill start`: what is requested, and what is refused, in one line each, before anything is requested."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute, connected
from databus_changes import backfill_checks
from databus_cli.__main__ import main
from databus_core.table_states import TableDoubt, decode_states, doubt_key, encode
from devstack import Server
from integration.backfills import Requests, make_requests

ROUTES = [
    {"match": ["*.secret"], "drop": True},
    {"match": ["*.secret"], "output": "audit", "drop": True},
    {"match": ["*.*"]},
    {"match": ["*.orders"], "output": "audit", "topic": "audit.{name}.{schema}.{table}"},
]
Start = Callable[..., Awaitable[tuple[int, list[str], list[str]]]]


@pytest.fixture
async def requests(
    source: Server, kafka: Server, schema: str, execute: Execute, tmp_path: Path
) -> AsyncIterator[Requests]:
    """The tables orders, items, hidden (not captured), secret (dropped by a rule) and log (without a key)."""
    for table in ("orders", "items", "hidden", "secret"):
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, name VARCHAR(9))")
    await execute("CREATE TABLE log (line VARCHAR(9))")
    requests = make_requests(source, kafka, schema, tmp_path, publisher={"routes": ROUTES})
    await requests.begin()
    yield requests


@pytest.fixture
def start(requests: Requests, schema: str, capfd: pytest.CaptureFixture[str]) -> Start:
    """Run `databus backfill start`; `SCHEMA` stands for the test's schema. Return exit code, output and errors."""

    async def command(*arguments: str) -> tuple[int, list[str], list[str]]:
        capfd.readouterr()
        given = [argument.replace("SCHEMA", schema) for argument in arguments]
        code = await asyncio.to_thread(main, ["backfill", "start", *given, "--config", str(requests.config)])
        out, err = capfd.readouterr()
        return code, out.splitlines(), [line.replace(schema, "SCHEMA") for line in err.splitlines()]

    return command


def configure(requests: Requests, section: str, **values: Any) -> None:
    config = json.loads(requests.config.read_text())
    config[section] = config.get(section, {}) | values
    requests.config.write_text(json.dumps(config))


async def test_each_table_gets_a_request_with_the_options_and_an_id_that_sorts_by_time(
    requests: Requests, start: Start, schema: str
) -> None:
    code, first, errors = await start("SCHEMA.items", "--clean", "--any-size")
    assert (code, errors) == (0, [])
    code, second, errors = await start("SCHEMA.o*", "SCHEMA.orders", "--where", "id > 1", "--topic-only", "audit")
    assert (code, errors) == (0, [])
    states = decode_states((await requests.records()).items())
    ids = [line.split()[0] for line in first + second]
    assert [line.split()[1] for line in first + second] == [f"{schema}.items", f"{schema}.orders"]
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}", each) for each in ids)
    items, orders = (states.backfills[each] for each in ids)
    assert items.requested_us <= orders.requested_us
    assert (items.name, items.clean, items.any_size, items.where, items.output) == (
        (schema, "items"),
        True,
        True,
        "",
        "",
    )
    assert (orders.where, orders.output, orders.clean, orders.any_size) == ("id > 1", "audit", False, False)
    assert {(each.wanted, each.cause) for each in states.backfills.values()} == {("run", "request")}


async def test_a_pattern_selects_the_captured_and_published_tables(requests: Requests, start: Start) -> None:
    code, lines, errors = await start("SCHEMA.*", "--json")
    assert (code, errors) == (0, [])
    found = [json.loads(line) for line in lines]
    assert [each["table"] for each in found] == ["items", "log", "orders"]
    assert [each["id"] for each in found] == sorted(decode_states((await requests.records()).items()).backfills)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["SCHEMA.missing"], "table SCHEMA.missing does not exist: check the name"),
        (["SCHEMA.hidden"], "table SCHEMA.hidden is not captured: check the name, source.include and source.exclude"),
        (["mysql.user"], "table mysql.user is not captured: check the name, source.include and source.exclude"),
        (["SCHEMA.secret"], "table SCHEMA.secret is not published: no rule of publisher.routes publishes it"),
        (["SCHEMA.items", "--topic-only", "no"], "there is no output no: publisher.routes has audit, default"),
        (
            ["SCHEMA.items", "--topic-only", "audit"],
            "table SCHEMA.items is not published by output audit, only by default",
        ),
        (["SCHEMA.h*"], "no captured and published table matches SCHEMA.h*: check the name, "),
        (["SCHEMA.i*", "--topic-only", "audit"], "no captured and published table matches SCHEMA.i*: check the name, "),
        (["SCHEMA.items", "--clean", "--where", "id > 1"], "clean and where exclude each other: "),
        (["SCHEMA.items", "--where", "1" * 65537], "a condition may have at most 65536 characters, not 65537"),
        (["SCHEMA.log", "--where", "id > 1"], "table SCHEMA.log: the condition is refused: the server refused "),
    ],
)
async def test_a_request_that_is_not_possible_is_refused_in_one_line(
    requests: Requests, start: Start, arguments: list[str], fault: str
) -> None:
    code, lines, (error, *more) = await start(*arguments)
    assert (code, lines, more) == (1, [], [])
    assert error.startswith(f"databus: {fault}")
    assert await requests.records() == {}


async def test_all_faults_are_reported_at_once_and_nothing_is_requested(requests: Requests, start: Start) -> None:
    await requests.request("1", "orders")
    before = await requests.records()
    configure(requests, "backfill", keyless_limit=1)
    tables = ["SCHEMA.items", "SCHEMA.missing", "SCHEMA.hidden", "SCHEMA.secret", "SCHEMA.orders", "SCHEMA.log"]
    code, lines, errors = await start(*tables, "--where", "id >")
    assert (code, lines) == (1, [])
    expected = [
        "SCHEMA.hidden is not captured", "SCHEMA.secret is not published", "SCHEMA.missing does not exist",
        "SCHEMA.items: the condition", "SCHEMA.orders: the condition", "SCHEMA.log: the condition",
        "SCHEMA.log has no usable key", "SCHEMA.orders has backfill 1 (waiting)",
    ]  # fmt: skip
    assert len(errors) == len(expected)
    assert all(any(text in error for error in errors) for text in expected)
    assert await requests.records() == before


@pytest.mark.parametrize("where", ["id BETWEEN 1 AND 2 OR name LIKE 'a)%'", "name = '-- ;' /* ( */", " id IN (1, 2) "])
async def test_a_condition_may_be_any_expression(requests: Requests, start: Start, where: str) -> None:
    assert (await start("SCHEMA.items", "--where", where))[0] == 0
    [request] = decode_states((await requests.records()).items()).backfills.values()
    assert request.where == where


async def test_a_condition_does_not_depend_on_the_sql_mode_of_the_server(
    start: Start, source: Server, schema: str
) -> None:
    async with connected(source) as run:
        await run("SET @mode = @@GLOBAL.sql_mode, GLOBAL sql_mode = 'ANSI_QUOTES'")
        try:
            assert (await start("SCHEMA.items", "--where", 'name = "a"'))[0] == 0
        finally:
            await run("SET GLOBAL sql_mode = @mode")


@pytest.mark.parametrize(
    "where",
    [
        "id >", "missing = 1", "COUNT(*) > 1", "id = ?", "1, 2", "id > 1 LIMIT 1",
        # would leave the parentheses around the condition, or hide what comes after it
        "1) OR (1=1", "1) OR COALESCE(1=1", "1 -- ", "1 #", "1 /*", "1) -- ", "1 THEN 1 END OR CASE WHEN 1",
        "1) UNION SELECT (1", "1 /*!99999 ", "1) /*!99999 ", "'", "`", "1 THEN 1 END -- ",
        # would run another statement
        "1); DROP TABLE SCHEMA.items; -- ", "1 THEN 1 END; DROP TABLE SCHEMA.items; -- ",
    ],
)  # fmt: skip
async def test_a_text_that_is_not_one_expression_is_no_condition(
    requests: Requests, start: Start, execute: Execute, where: str
) -> None:
    code, _, (error,) = await start("SCHEMA.items", "--where", where)
    assert code == 1
    assert error.startswith("databus: table SCHEMA.items: the condition is refused: ")
    assert await requests.records() == {}
    await execute("INSERT INTO items VALUES (1, 'a')")  # the table still exists


async def test_a_condition_that_waits_for_a_lock_is_refused_in_time(
    monkeypatch: pytest.MonkeyPatch, start: Start, source: Server, schema: str
) -> None:
    monkeypatch.setattr(backfill_checks, "_CHECK_SECONDS", 1)
    async with connected(source) as lock:
        await lock(f"LOCK TABLES {schema}.orders WRITE")
        code, _, (error,) = await start("SCHEMA.items", "--where", f"id > (SELECT MAX(id) FROM {schema}.orders)")
    assert code == 1
    assert error.startswith(
        "databus: table SCHEMA.items: the condition is refused: the server has not checked it within 1 s"
    )


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_condition_is_not_evaluated_when_it_is_checked(start: Start, execute: Execute, schema: str) -> None:
    await execute("INSERT INTO items VALUES (1, 'a')")
    assert (await start("SCHEMA.items", "--where", f"(SELECT SLEEP(1000) FROM {schema}.items) = 0"))[0] == 0


async def test_a_table_without_a_usable_key_is_refused_only_if_it_is_large(
    requests: Requests, start: Start, execute: Execute
) -> None:
    await execute("INSERT INTO log VALUES ('a')")
    configure(requests, "backfill", keyless_limit=1)
    code, _, (error,) = await start("SCHEMA.*")
    assert code == 1
    assert error.startswith("databus: table SCHEMA.log has no usable key and 0 MiB, more than backfill.keyless_limit: ")
    assert await requests.records() == {}
    assert (await start("SCHEMA.log", "--any-size"))[0] == 0
    configure(requests, "backfill", keyless_limit="1GiB")
    [backfill] = decode_states((await requests.records()).items()).backfills
    await requests.reach(backfill, state="done")
    assert (await start("SCHEMA.log"))[0] == 0


async def test_the_size_of_a_table_is_not_one_that_the_server_has_cached(
    requests: Requests, start: Start, execute: Execute, schema: str
) -> None:
    await execute("CREATE TABLE grows (line LONGBLOB) STATS_PERSISTENT = 0")
    await execute("SELECT data_length FROM information_schema.tables WHERE table_schema = %s", schema)
    for _ in range(20):
        await execute("INSERT INTO grows VALUES (REPEAT('x', 100000))")
    configure(requests, "backfill", keyless_limit="1MiB")
    code, _, (error,) = await start("SCHEMA.grows")
    assert code == 1
    assert error.startswith("databus: table SCHEMA.grows has no usable key and ")


@pytest.mark.parametrize("state", ["waiting", "running", "paused", "done", "cancelled", "failed"])
async def test_a_table_has_one_backfill_at_a_time(requests: Requests, start: Start, state: str) -> None:
    await requests.request("1", "items")
    if state != "waiting":
        await requests.reach("1", state=state)
    code, _, errors = await start("SCHEMA.items")
    if state in ("done", "cancelled", "failed"):
        assert (code, errors) == (0, [])
    else:
        fault = f"databus: table SCHEMA.items has backfill 1 ({state}): let it end, or cancel it"
        assert (code, errors) == (1, [fault])
        assert decode_states((await requests.records()).items()).backfills.keys() == {"1"}


async def test_a_table_in_doubt_is_loaded_only_as_a_whole(requests: Requests, start: Start, schema: str) -> None:
    doubt = TableDoubt(state="parked", reason="rollback", text="ROLLBACK", file="log.1", offset=4, since_us=5)
    await requests.write(doubt_key(schema, "orders"), encode(doubt))
    for options in ([], ["--clean", "--topic-only", "audit"]):
        code, _, errors = await start("SCHEMA.orders", *options)
        text = "databus: table SCHEMA.orders is in doubt: request it with clean, and for all outputs"
        assert (code, errors) == (1, [text])
    assert (await start("SCHEMA.orders", "--clean"))[0] == 0


async def test_a_missing_privilege_is_named(requests: Requests, start: Start, source: Server, schema: str) -> None:
    name = f"u_{secrets.token_hex(4)}"
    async with connected(source) as run:
        await run(f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'")
        try:
            await run(f"GRANT SELECT ON {schema}.items TO {name}@'%'")
            await run(f"GRANT INSERT ON {schema}.orders TO {name}@'%'")
            configure(requests, "source", user=name, password="secret")
            code, _, errors = await start("SCHEMA.items", "SCHEMA.orders", "SCHEMA.log")
            assert code == 1
            tables = ("SCHEMA.log", "SCHEMA.orders")
            assert errors == [f"databus: user {name!r} lacks SELECT on {table}: grant it" for table in tables]
            assert await requests.records() == {}
            assert (await start("SCHEMA.items"))[0] == 0
        finally:
            await run(f"DROP USER {name}@'%'")


async def test_a_pipeline_that_has_not_begun_gets_no_topic_and_no_request(requests: Requests, start: Start) -> None:
    configure_name = json.loads(requests.config.read_text()) | {"name": "new"}
    requests.config.write_text(json.dumps(configure_name))
    for _ in range(2):  # if the first had created the topic, the second would succeed
        code, _, errors = await start("SCHEMA.items")
        text = "databus: pipeline new has not begun: start reader and publisher, then request the backfill again"
        assert (code, errors) == (1, [text])
