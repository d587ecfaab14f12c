"""A doubt about one table parks that table only, and heals it: consumers see TRUNCATE and the rows as they are."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from asyncmy.errors import DatabaseError

from common.connections import Execute, connected, printing
from common.waiting import eventually
from devstack import Server
from devstack.replication import run as run_statements
from integration.live_tables import Begin

_MINIMAL = "SET SESSION binlog_row_image = MINIMAL"
_FULL = "SET SESSION binlog_row_image = FULL"
_PARTITIONS = " PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (2), PARTITION q VALUES LESS THAN MAXVALUE)"

#: table, named like its reason → statements that raise the doubt
DOUBTS = {
    "incomplete_row_image": [_MINIMAL, "UPDATE incomplete_row_image SET v = 'changed' WHERE id = 1", _FULL],
    "statement_format": [
        "SET SESSION binlog_format = STATEMENT",
        "UPDATE statement_format SET v = 'changed' WHERE id = 1",
        "SET SESSION binlog_format = ROW",
    ],
    "unlogged_rows": ["ALTER TABLE unlogged_rows TRUNCATE PARTITION p"],
    "unlogged_rows_2": ["ALTER TABLE unlogged_rows_2 DROP PARTITION p"],
    "unlogged_rows_3": [
        "DELETE FROM unlogged_rows_4 WHERE id = 2",
        "UPDATE unlogged_rows_4 SET v = 'moved'",
        "ALTER TABLE unlogged_rows_3 EXCHANGE PARTITION p WITH TABLE unlogged_rows_4",
    ],
    "rollback": [
        "START TRANSACTION",
        "UPDATE rollback SET v = 'changed' WHERE id = 1",
        "SAVEPOINT s",
        "INSERT INTO rollback VALUES (7, 'undone')",
        "UPDATE rollback_2 SET v = 'kept' WHERE id = 1",
        "ROLLBACK TO s",
        "COMMIT",
    ],
    "column_mismatch": [
        "SET SESSION sql_log_bin = 0",
        "ALTER TABLE column_mismatch ADD added INT",
        "SET SESSION sql_log_bin = 1",
        "INSERT INTO column_mismatch VALUES (7, 'new', 1)",
    ],
}  # fmt: skip
#: table → what follows its columns
TABLES = dict.fromkeys([*DOUBTS, "unlogged_rows_4", "rollback_2", "other"], "") | {
    "unlogged_rows": _PARTITIONS, "unlogged_rows_2": _PARTITIONS, "unlogged_rows_3": _PARTITIONS,
    "rollback_2": "ENGINE=MyISAM",
}  # fmt: skip


@pytest.fixture
async def aside(schema: str, execute: Execute) -> AsyncIterator[str]:
    """Another schema, which is not captured."""
    name = f"{schema}_aside"
    await execute(f"CREATE DATABASE {name}")
    yield name
    await execute(f"DROP DATABASE {name}")


@pytest.fixture
async def unnamed(source: Server) -> AsyncIterator[None]:
    """The binlog does not name columns."""
    async with connected(source) as execute:
        await execute("SET GLOBAL binlog_row_metadata = MINIMAL")
        yield
        await execute("SET GLOBAL binlog_row_metadata = FULL")


@pytest.mark.usefixtures("unnamed")
async def test_each_doubt_parks_its_table_only_and_is_healed(begin: Begin, source: Server, execute: Execute) -> None:
    """With GTIDs, MySQL refuses to change tables with and without transactions in one transaction.

    The table without transactions is not in doubt: MariaDB logs its changes at once, outside of the transaction.
    """
    left_out = ("rollback", "rollback_2") if source.kind == "mysql" else ()
    tables = {table: rest for table, rest in TABLES.items() if table not in left_out}
    live = await begin(tables)
    for number, table in enumerate(each for each in DOUBTS if each in tables):
        for statement in DOUBTS[table]:
            await execute(statement)
        await execute(f"INSERT INTO {table} (id, v) VALUES (9, 'after')")
        await execute("INSERT INTO other VALUES (%s, 'flows')", number + 10)
        await live.equals("other")
    await live.parked()
    await live.equals(*tables)
    healed = {each.table for each in (await live.states()).backfills.values() if each.cause == "heal"}
    assert healed == tables.keys() - {"rollback_2", "other"}
    assert set(live.truncated) == healed


@pytest.mark.usefixtures("unnamed")
async def test_rows_of_a_table_that_was_altered_before_the_reader_knew_it_park_it(
    begin: Begin, schema: str, execute: Execute
) -> None:
    """It was created without a trace in the binlog, so information_schema only shows it as the ALTER has left it."""
    live = await begin({"t": "", "other": ""}, doubt={"heal": "manual"})
    await execute("DROP TABLE t")
    await execute("INSERT INTO other VALUES (3, 'dropped')")
    await live.equals("other")
    await asyncio.to_thread(live.pipeline.stop, "reader")
    await execute("SET SESSION sql_log_bin = 0")
    await execute("CREATE TABLE t (id INT PRIMARY KEY, old VARCHAR(9))")
    await execute("SET SESSION sql_log_bin = 1")
    await execute("INSERT INTO t VALUES (3, 'c'), (4, 'd')")
    await execute("ALTER TABLE t DROP COLUMN old, ADD new VARCHAR(9) DEFAULT 'n'")
    await execute("INSERT INTO t VALUES (5, 'e')")
    await execute("INSERT INTO other VALUES (4, 'flows')")
    live.pipeline.spawn("reader")
    await live.equals("other")
    assert await live.parked("t") == {"t": "unknown_table"}
    assert sorted(live.rows["t"]) == [b"1", b"2"]
    assert await live.command("backfill", "start", f"{schema}.t", "--clean", "--wait") == 0
    await execute("INSERT INTO t VALUES (6, 'f')")
    await live.equals("t", "other")
    await live.parked()
    assert live.truncated == ["t"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_parked_table_waits_for_a_command_while_others_flow(
    begin: Begin, schema: str, execute: Execute, capfd: pytest.CaptureFixture[str]
) -> None:
    live = await begin({"t": "", "other": ""}, doubt={"heal": "manual"})
    await doubt(execute, 1)
    assert await live.parked("t") == {"t": "incomplete_row_image"}
    before = live.rows["t"].copy()
    await execute("INSERT INTO t VALUES (3, 'left')")
    await execute("INSERT INTO other VALUES (3, 'flows')")
    await live.equals("other")
    assert live.rows["t"] == before

    assert live.pipeline.get("reader", "/readyz").text == f"ok; degraded: {schema}.t is parked\n"
    metrics = live.pipeline.get("reader", "/metrics").text
    assert f'state="parked",table="{schema}.t"}} 1.0' in metrics
    capfd.readouterr()
    assert await live.command("deadletter", "list", "--json") == 0
    [letter] = capfd.readouterr().out.splitlines()
    assert json.loads(letter)["error"].startswith(f"{schema}.t is parked: rows of {schema}.t at ")
    assert await live.command("status", "--json") == 0
    shown = json.loads(capfd.readouterr().out)
    [in_doubt] = shown["tables_in_doubt"]
    assert (in_doubt["table"], in_doubt["state"], in_doubt["backfill"]) == ("t", "parked", None)
    assert shown["backfills"] == []
    assert await live.command("status") == 0
    out = capfd.readouterr().out
    assert f"tables in doubt:\n  {schema}.t is parked since " in out
    assert f"run `databus backfill start {schema}.t --clean`\nbackfills: none\n" in out

    assert await live.command("backfill", "start", f"{schema}.t", "--clean", "--wait") == 0
    await live.equals("t", "other")
    assert live.truncated == ["t"]
    assert live.pipeline.get("reader", "/readyz").text == "ok\n"
    capfd.readouterr()
    assert await live.command("deadletter", "list", "--json") == 0
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_the_doubt_follows_a_table_that_is_renamed(begin: Begin, schema: str, execute: Execute) -> None:
    live = await begin({"t": "", "other": ""}, doubt={"heal": "manual"})
    await doubt(execute, 1)
    await live.parked("t")
    await execute("RENAME TABLE other TO gone, t TO other")
    assert await live.parked("other") == {"other": "incomplete_row_image"}
    await execute("INSERT INTO other VALUES (3, 'left')")
    assert await live.command("backfill", "start", f"{schema}.other", "--clean", "--wait") == 0
    await live.equals("other")
    await live.parked()


#: how tools and people replace a table by another one, which is not captured
ARRIVALS = {
    "gh-ost": ["RENAME TABLE t TO _t_del", "RENAME TABLE _t_new TO t"],
    "pt-online-schema-change": ["RENAME TABLE t TO _t_old, _t_new TO t"],
    "moved aside": ["RENAME TABLE t TO u, _t_new TO t"],
    "from another schema": [
        "RENAME TABLE t TO _t_old, _t_new TO {aside}._t_new",
        "ALTER TABLE {aside}._t_new COMMENT 'moved', RENAME {schema}.t",
    ],
}  # fmt: skip


@pytest.mark.parametrize("statements", ARRIVALS.values(), ids=ARRIVALS)
async def test_a_table_that_was_not_captured_under_its_old_name_is_loaded(
    begin: Begin, schema: str, execute: Execute, aside: str, statements: list[str]
) -> None:
    live = await begin({"t": "", "u": ""}, source={"exclude": [f"{schema}._*", f"{aside}.*"]})
    await execute("DROP TABLE u")
    await execute("CREATE TABLE _t_new (id INT PRIMARY KEY, v VARCHAR(9), more INT)")
    await execute("INSERT INTO _t_new VALUES (1, 'new', 1), (3, 'new', 3)")
    for statement in statements:
        await execute(statement.format(schema=schema, aside=aside))
    await execute("INSERT INTO t VALUES (4, 'after', 4)")
    await live.equals("t")
    await live.parked()
    healed = [each.table for each in (await live.states()).backfills.values() if each.cause == "heal"]
    assert (healed, live.truncated) == (["t"], ["t"])


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_doubt_about_a_prepared_transaction_is_raised_at_its_commit(
    begin: Begin, source: Server, schema: str, execute: Execute
) -> None:
    """The table was parked and loaded again meanwhile: the backfill has not seen the rows of the transaction."""
    live = await begin({"t": ""}, doubt={"heal": "manual"})
    async with connected(source) as prepare:
        for statement in (_MINIMAL, "XA START 'x'", f"UPDATE {schema}.t SET v = 'xa' WHERE id = 1", "XA END 'x'"):
            await prepare(statement)
        await prepare("XA PREPARE 'x'")
    await doubt(execute, 2)
    await live.parked("t")
    assert await live.command("backfill", "start", f"{schema}.t", "--clean", "--wait") == 0
    await live.equals("t")
    await decide(source, "XA COMMIT 'x'")
    await live.parked("t")
    assert await live.command("backfill", "start", f"{schema}.t", "--clean", "--wait") == 0
    await live.equals("t")
    assert live.rows["t"][b"1"] == [b"1", b"xa"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_table_that_was_emptied_and_not_loaded_is_parked_until_it_is_dropped(
    begin: Begin, schema: str, execute: Execute
) -> None:
    live = await begin({"t": ""}, backfill={"rows_per_second": 1})
    await execute("INSERT INTO t VALUES " + ", ".join(f"({number}, 'more')" for number in range(3, 60)))
    assert await live.command("backfill", "start", f"{schema}.t", "--clean", "--no-wait") == 0
    await eventually(live.was_truncated)
    assert await live.command("backfill", "cancel", f"{schema}.t") == 0
    assert await live.parked("t") == {"t": "incomplete_backfill"}
    await execute("DROP TABLE t")
    await live.parked()


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_table_whose_tablespace_is_imported_is_in_doubt(
    begin: Begin, source: Server, schema: str, execute: Execute
) -> None:
    """It could not be loaded before: without a tablespace, it has no rows."""
    live = await begin({"t": "", "other": ""}, doubt={"heal": "manual"})
    async with printing(source) as query:
        [[datadir]] = await query("SELECT @@datadir")
    folder = Path((datadir or b"").decode(), schema)
    await execute("FLUSH TABLES t FOR EXPORT")
    files = {folder / name: (folder / name).read_bytes() for name in ("t.ibd", "t.cfg")}
    await execute("UNLOCK TABLES")
    await execute("DELETE FROM t WHERE id = 1")
    await live.equals("t")
    await execute("ALTER TABLE t DISCARD TABLESPACE")
    await live.parked("t")
    assert await live.command("backfill", "start", f"{schema}.t", "--clean", "--wait") == 1
    restore(files)
    await execute("ALTER TABLE t IMPORT TABLESPACE")
    await execute("INSERT INTO t VALUES (3, 'c')")
    await live.parked("t")
    assert await live.command("backfill", "start", f"{schema}.t", "--clean", "--wait") == 0
    await live.equals("t", "other")
    assert sorted(live.rows["t"]) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_table_that_a_rule_does_not_fit_any_more_is_parked_by_the_publisher_and_healed(
    begin: Begin, schema: str, execute: Execute
) -> None:
    """A load that still meets the cause fails before consumers see anything of it."""
    routes = [{"match": [f"{schema}.t"], "key": ["v"]}, {"match": ["*.*"]}]
    live = await begin({"t": "", "other": ""}, publisher={"routes": routes})
    await execute("ALTER TABLE t DROP COLUMN v")
    await execute("INSERT INTO t VALUES (3)")
    await execute("INSERT INTO other VALUES (3, 'flows')")
    await live.equals("other")
    assert await live.parked("t") == {"t": "rule_mismatch"}
    await eventually(live.is_degraded)
    await execute("ALTER TABLE t ADD v VARCHAR(9) DEFAULT 'new'")
    await execute("INSERT INTO t VALUES (4, 'more')")
    await execute("INSERT INTO other VALUES (4, 'flows')")
    await live.parked()
    await live.equals("t", "other")
    assert live.truncated == ["t"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_the_doubt_about_a_table_that_is_excluded_ends(
    begin: Begin, schema: str, execute: Execute, capfd: pytest.CaptureFixture[str]
) -> None:
    live = await begin({"t": "", "other": ""}, doubt={"heal": "manual"})
    await doubt(execute, 1)
    await live.parked("t")
    await asyncio.to_thread(live.pipeline.stop, "reader")
    config = json.loads(live.pipeline.config.read_text())
    config["source"]["exclude"] = [f"{schema}.t"]
    live.pipeline.config.write_text(json.dumps(config))
    await asyncio.to_thread(live.pipeline.start_all, "reader")
    await live.parked()
    text = f"{schema}.t is no longer in doubt: it is not captured any more"
    assert text in live.pipeline.log("reader").read_text()
    assert live.pipeline.get("reader", "/readyz").text == "ok\n"
    assert "databus_reader_table_in_doubt{" not in live.pipeline.get("reader", "/metrics").text
    capfd.readouterr()
    assert await live.command("deadletter", "list", "--json") == 0
    assert capfd.readouterr().out == ""


async def doubt(execute: Execute, row: int) -> None:
    """Update a row of table t, so that the binlog lacks columns."""
    for statement in (_MINIMAL, f"UPDATE t SET v = 'changed' WHERE id = {row}", _FULL):
        await execute(statement)


def restore(files: dict[Path, bytes]) -> None:
    """Write files that the database owns."""
    for path, content in files.items():
        path.write_bytes(content)
        shutil.chown(path, path.parent.owner(), path.parent.group())


async def decide(source: Server, statement: str) -> None:
    """Decide a prepared transaction, as soon as the server has noticed that its session is gone."""

    async def decided() -> bool:
        with suppress(DatabaseError):
            await run_statements(source, statement)
            return True
        return False

    await eventually(decided, seconds=10)
