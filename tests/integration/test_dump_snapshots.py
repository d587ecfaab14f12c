"""A dump contains the tables exactly as they were at its position; if that is impossible, it fails."""

import asyncio
import random
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest

from common.connections import Execute, connected
from common.waiting import eventually
from databus_binlog import Position, Rows
from databus_binlog.session import Session
from databus_changes.catalog import read_table
from databus_changes.snapshot.select import select
from databus_changes.snapshot.views import View, open_views
from databus_core.errors import SchemaMismatch, SourceUnavailable
from databus_core.events import Row, Table
from databus_core.names import dead_letter_topic, progress_topic
from databus_core.progress import Progress, encode_progress
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_dump_api.tables import read_state, require_unchanged
from databus_wire.packed_rows import PackedRows
from devstack import Server
from integration.dump_api import Api, create_topic, produce


# T13: commits at any moment between opening the snapshot and reading its binlog position
@pytest.mark.parametrize("dumps", [1, pytest.param(50, marks=pytest.mark.slow)])
async def test_t13_a_snapshot_is_consistent_and_exactly_at_its_position(
    serve: Callable[..., Any], source: Server, schema: str, dumps: int
) -> None:
    async with connected(source) as execute:
        await execute(f"USE {schema}")
        await execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL, note TEXT)")
        await execute("CREATE TABLE log (n INT PRIMARY KEY)")
        for first in range(0, 5000, 100):
            rows = ", ".join(f"({number}, 100, REPEAT('x', 500))" for number in range(first, first + 100))
            await execute(f"INSERT INTO accounts VALUES {rows}")
        await execute("ANALYZE TABLE accounts")
    started, stop = asyncio.Event(), asyncio.Event()
    writer = asyncio.create_task(transfer(source, schema, started, stop))
    await started.wait()
    logged = []
    async with serve(dumps={"chunk_size": 300_000}) as api:  # `accounts` is read in ranges by two sessions
        for _ in range(dumps):
            manifest = await api.take_dump()
            logged.append((manifest["position"], await consistent_log(api, manifest, schema)))
        stop.set()
        last = await writer
        for position, count in logged:
            assert await logged_after(api.settings, position) == list(range(count + 1, last + 1))
            assert count < last


async def consistent_log(api: Api, manifest: dict[str, Any], schema: str) -> int:
    """Return how many transactions a dump has; fail unless it has no part of others, and is in the order of the key."""
    assert len([file for file in manifest["files"] if file["table"] == f"{schema}.accounts"]) > 3
    accounts = [(int(row[0] or 0), int(row[1] or 0)) for row in await api.rows(manifest, f"{schema}.accounts")]
    assert [account for account, _ in accounts] == list(range(5000))
    assert sum(balance for _, balance in accounts) == 500_000
    log = [int(row[0] or 0) for row in await api.rows(manifest, f"{schema}.log")]
    assert log == list(range(1, len(log) + 1))
    return len(log)


async def transfer(source: Server, schema: str, started: asyncio.Event, stop: asyncio.Event) -> int:
    """Move money and log each transaction's number until `stop` is set; return the last number.

    After the first transaction `started` is set.
    """
    dice = random.Random(3)
    number = 0
    async with connected(source) as execute:
        await execute(f"USE {schema}")
        while not stop.is_set():
            number += 1
            giver, taker = dice.sample(range(5000), 2)
            await execute("BEGIN")
            await execute("UPDATE accounts SET balance = balance - 1 WHERE id = %s", giver)
            await execute("UPDATE accounts SET balance = balance + 1 WHERE id = %s", taker)
            await execute("INSERT INTO log VALUES (%s)", number)
            await execute("COMMIT")
            started.set()
    return number


async def logged_after(settings: Settings, position: dict[str, Any]) -> list[int]:
    """Read from the binlog the numbers that were inserted into table `log` after a position."""
    numbers = []
    async with connect_source(settings.source) as session:
        stream = await session.dump(
            msgspec.convert(position, Position),
            server_id=random.SystemRandom().randrange(10_000, 2**31),
            wanted=lambda schema, table: (schema, table) == (settings.name, "log"),
            follow=False,
        )
        async for events in stream:
            for event in events:
                if isinstance(event, Rows):
                    numbers += [int(row[0] or 0) for row in event.images()]
    return numbers


async def test_kafka_offsets_are_the_ends_of_the_topics(api: Api, schema: str, execute: Execute, kafka: Server) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("CREATE TABLE new (id INT PRIMARY KEY)")
    topic = f"{schema}.{schema}.t"
    await create_topic(kafka, topic, partitions=2)
    await produce(kafka, topic, b"one", b"two", b"three", partition=1)
    manifest = await api.take_dump()
    assert manifest["kafka_offsets"] == {topic: {"0": 0, "1": 3}}
    assert manifest["dead_letter_offset"] == 0
    letters = dead_letter_topic(schema)
    await create_topic(kafka, letters)
    await produce(kafka, letters, b"a letter", b"another one")
    assert (await api.take_dump())["dead_letter_offset"] == 2


async def rows_in(view: View, table: Table) -> list[Row]:
    return [row async for batch in view.batches(select(table)) for row in PackedRows(batch.rows)]


@asynccontextmanager
async def slow_commits(mariadb: Server) -> AsyncIterator[None]:
    """Let the next commit wait two seconds while it is in the binlog but not yet visible.

    The server waits for a semi-synchronous replica that does not exist.
    """
    kept = {"enabled": "OFF", "timeout": "10000", "wait_point": "AFTER_COMMIT"}
    wanted = {"timeout": "2000", "wait_point": "AFTER_SYNC", "enabled": "ON"}
    async with connected(mariadb) as execute:
        for setting, value in wanted.items():
            await execute(f"SET GLOBAL rpl_semi_sync_master_{setting} = {value}")
        try:
            yield
        finally:
            for setting, value in kept.items():
                await execute(f"SET GLOBAL rpl_semi_sync_master_{setting} = {value}")


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_view_contains_a_commit_that_is_in_the_binlog_but_not_yet_visible(
    api: Api, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with connect_source(api.settings.source) as session, slow_commits(source):
        table = await read_table(session, schema, "t")
        assert table
        before = await session.current_position()
        commit = asyncio.create_task(execute("INSERT INTO t VALUES (1)"))
        while await session.current_position() == before:
            assert not commit.done()
        assert await session.query(f"SELECT * FROM {schema}.t") == []
        async with open_views(api.settings.source, api.settings.source.hosts[0]) as [view]:
            assert await rows_in(view, table) == [[b"1"]]
        await commit


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_no_dump_is_taken_before_the_pipeline_has_a_position(
    serve: Callable[..., Any], kafka: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with serve(started=False) as api:
        await require_refusal(api)
        await create_topic(kafka, progress_topic(schema))
        await require_refusal(api)
        await produce(kafka, progress_topic(schema), encode_progress(Progress()))
        await require_refusal(api)
        await produce(kafka, progress_topic(schema), encode_progress(Progress(Position())))
        await api.take_dump()


async def require_refusal(api: Api) -> None:
    answer = await api.post("/v1/dumps", json={})
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
    assert "start reader and publisher" in answer.json()["detail"]
    assert int(answer.headers["Retry-After"]) > 0


async def test_ddl_on_a_table_fails_the_dump(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    source = api.settings.source
    with pytest.raises(SchemaMismatch, match="changed by DDL"):
        async with connect_source(source) as session:
            table = await read_table(session, schema, "t")
            assert table
            state = await read_state(session, table)
            async with open_views(source, source.hosts[0]) as [view]:
                await execute("ALTER TABLE t ADD COLUMN late INT DEFAULT 7")
                assert await rows_in(view, table) == [[b"1"]]
                await require_unchanged(session, state)


async def server_second(session: Session) -> object:
    return (await session.query("SELECT UNIX_TIMESTAMP()"))[0][0]


async def is_over(session: Session, second: object) -> bool:
    return await server_second(session) != second


async def test_a_table_replaced_by_a_rename_fails_the_dump(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    source = api.settings.source
    async with connect_source(source) as session:
        table = await read_table(session, schema, "t")
        assert table
        state = await read_state(session, table)
        # Creation times of tables have whole seconds, so the next table must be created in a later second.
        await eventually(partial(is_over, session, await server_second(session)))
        await execute("CREATE TABLE ghost LIKE t")
        await execute("RENAME TABLE t TO old, ghost TO t")
        with pytest.raises(SchemaMismatch, match="changed by DDL"):
            await require_unchanged(session, state)


async def test_ddl_waits_for_the_table_being_read_but_not_for_the_dump(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("SET lock_wait_timeout = 10")
    async with connect_source(api.settings.source) as session:
        table = await read_table(session, schema, "t")
        assert table
        async with open_views(api.settings.source, api.settings.source.hosts[0]) as [view]:
            assert await rows_in(view, table) == []
            alter = asyncio.create_task(execute("ALTER TABLE t ADD COLUMN late INT"))
            query = (
                "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'ALTER%' AND state LIKE '%lock'"
            )
            while await session.query(query) != [(1,)]:
                assert not alter.done()
            await view.release_table()
            await alter


async def test_a_server_that_sends_nothing_fails_the_dump(
    api: Api, schema: str, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with connect_source(api.settings.source) as session:
        table = await read_table(session, schema, "t")
        assert table
        monkeypatch.setattr("databus_changes.snapshot.connection._ANSWER_SECONDS", 3.0)
        with pytest.raises(SourceUnavailable, match="sent nothing for 3 s"):
            async with asyncio.timeout(60), open_views(api.settings.source, api.settings.source.hosts[0]) as [view]:
                await execute("LOCK TABLES t WRITE")
                await rows_in(view, table)
    await execute("UNLOCK TABLES")


async def test_a_table_whose_engine_has_no_consistent_snapshots_fails_the_dump(
    api: Api, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=MyISAM")
    error = (await api.take_dump(state="failed"))["error"]
    assert f"{schema}.t uses storage engine MyISAM" in error
    assert "source.exclude" in error


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_the_error_of_a_dump_names_a_missing_grant(
    serve: Callable[..., Any], source: Server, schema: str, execute: Execute
) -> None:
    user = f"u_{schema}"
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute(f"CREATE USER {user} IDENTIFIED BY 'secret'")
    await execute(f"GRANT SELECT ON {schema}.* TO {user}")
    try:
        async with serve(source={"user": user, "password": "secret"}) as api:
            error = (await api.take_dump(state="failed"))["error"]
    finally:
        await execute(f"DROP USER {user}")
    assert "GRANT RELOAD" in error
    assert "secret" not in error


async def test_memory_does_not_grow_with_the_size_of_the_table(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, text LONGTEXT)")
    await execute("INSERT INTO t (text) VALUES (REPEAT('x', 10000))")
    for _ in range(13):
        await execute("INSERT INTO t (text) SELECT text FROM t")
    tracemalloc.start()
    try:
        manifest = await api.take_dump()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(file["rows"] for file in manifest["files"]) == 8192
    assert peak < 20 * 2**20
