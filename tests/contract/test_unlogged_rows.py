"""On real servers, statements that change rows without logging them put exactly the changed tables in doubt."""

import random
from collections.abc import Mapping

import pytest

from common.connections import Execute, session_on
from databus_binlog import Position, Query, Rows
from databus_binlog.session import Session
from databus_changes.ddl.dialect import dialect_of
from databus_changes.doubts import Doubt, Reason
from databus_changes.statements import StatementReader
from databus_changes.tracker import TableTracker
from databus_core.kafka_history import SchemaHistory
from databus_core.settings import Source
from devstack import Kind, Server

PARTITIONS = ", ".join(f"PARTITION p{n} VALUES LESS THAN ({n}0)" for n in range(1, 10))
SETUP = [
    f"CREATE TABLE t (a INT) PARTITION BY RANGE (a) ({PARTITIONS})",
    "INSERT INTO t VALUES (1), (11), (21), (31), (41), (51), (61)",
    "CREATE TABLE u (a INT)",
    "INSERT INTO u VALUES (2)",
]
#: a statement → the tables whose rows it changes
BOTH: dict[str, set[str]] = {
    "ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE u": {"t", "u"},
    "ALTER TABLE `t` TRUNCATE PARTITION p1": {"t"},
    "ALTER TABLE t DROP PARTITION p2, p3": {"t"},
    "ALTER TABLE t ADD PARTITION (PARTITION p10 VALUES LESS THAN (100))": set(),
    "ALTER TABLE t REORGANIZE PARTITION p4, p5 INTO (PARTITION q VALUES LESS THAN (50))": set(),
    "ALTER TABLE t REBUILD PARTITION ALL": set(),
    "ALTER TABLE t REMOVE PARTITIONING": set(),
    "ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 4": set(),
    "ALTER TABLE t COALESCE PARTITION 2": set(),
    "ALTER TABLE t ENGINE=InnoDB, COMMENT='DROP PARTITION p'": set(),
    "OPTIMIZE TABLE t": set(),
    "REPAIR TABLE u": set(),
}
ONLY: dict[Kind, dict[str, set[str]]] = {
    "mariadb": {
        "CREATE TABLE d (a INT, b INT)": set(),
        "INSERT INTO d VALUES (1, 1), (1, 2)": set(),
        "ALTER IGNORE TABLE d ADD UNIQUE (a)": {"d"},
        "CREATE TABLE s (a INT) WITH SYSTEM VERSIONING": set(),
        "INSERT INTO s VALUES (1)": set(),
        "UPDATE s SET a = 2": set(),
        "ALTER TABLE s DROP SYSTEM VERSIONING": {"s"},
        "CREATE TABLE r (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (9), PARTITION q VALUES LESS THAN"
        " (19))": set(),
        "INSERT INTO r VALUES (1), (11)": set(),
        "ALTER TABLE r CONVERT PARTITION q TO TABLE v": {"r", "v"},
        "ALTER TABLE r CONVERT TABLE v TO PARTITION q VALUES LESS THAN (19)": {"r", "v"},
    },
    "mysql": {
        "CREATE TABLE b (a INT)": set(),
        "INSERT INTO b VALUES (1)": set(),
        "ALTER TABLE b COMMENT 'x' ENGINE='BLACKHOLE'": {"b"},
    },
}


@pytest.mark.parametrize("source", ["mariadb", "mysql"], indirect=True)
async def test_the_tables_whose_rows_a_statement_changes_are_in_doubt(
    source: Server, schema: str, execute: Execute, queries: Session
) -> None:
    for statement in SETUP:
        await execute(statement)
    start, before = await queries.current_position(), await contents(queries, schema)
    for statement, expected in (BOTH | ONLY[source.kind]).items():
        await execute(statement)
        end, after = await queries.current_position(), await contents(queries, schema)
        doubts, logged_rows = await doubts_between(source, queries, start, end, schema)
        changed = {name for name in before | after if before.get(name, []) != after.get(name, [])}
        assert logged_rows or changed == expected, statement
        assert [doubt.tables for doubt in doubts] == [{(schema, name) for name in expected}] * bool(expected), statement
        assert {doubt.reason for doubt in doubts} <= {Reason.UNLOGGED_ROWS}
        start, before = end, after


async def test_the_rows_of_a_tablespace_are_in_doubt(
    source: Server, schema: str, execute: Execute, queries: Session
) -> None:
    await execute("CREATE TABLE i (a INT)")
    start = await queries.current_position()
    await execute("ALTER TABLE i DISCARD TABLESPACE")
    doubts, _ = await doubts_between(source, queries, start, await queries.current_position(), schema)
    assert [doubt.tables for doubt in doubts] == [{(schema, "i")}]


async def contents(queries: Session, schema: str) -> Mapping[str, list[tuple[object, ...]]]:
    """Return the rows of each table, with the old versions that MariaDB keeps."""
    found = {}
    columns = await queries.query(
        "SELECT t.table_name, t.table_type, GROUP_CONCAT(c.column_name) FROM information_schema.tables t "
        "JOIN information_schema.columns c USING (table_schema, table_name) WHERE t.table_schema = %s GROUP BY 1, 2",
        (schema,),
    )
    for name, kind, names in columns:
        versions = " FOR SYSTEM_TIME ALL" if kind == "SYSTEM VERSIONED" else ""
        found[str(name)] = sorted(await queries.query(f"SELECT {names} FROM {schema}.{name}{versions}"))
    return found


async def doubts_between(
    source: Server, queries: Session, start: Position, end: Position, schema: str
) -> tuple[list[Doubt], bool]:
    """Return the doubts about the statements between two positions, and whether rows are logged there."""
    captured, doubts, logged_rows = Source(include=[f"{schema}.*"]), [], False
    tracker = TableTracker(SchemaHistory(), await dialect_of(queries), lookup=None, tracks=captured.captures_some)
    statements = StatementReader(captured, tracker, doubts.append)
    async with session_on(source) as session:
        server_id = random.randrange(10**6, 2**31)
        stream = await session.dump(start, server_id=server_id, follow=False, wanted=captured.captures)
        async for events in stream:
            for event in events:
                if (event.file, event.end) > (end.file, end.offset):
                    continue
                logged_rows |= isinstance(event, Rows)
                if isinstance(event, Query) and event.schema == schema:
                    statements.read(event)
    return doubts, logged_rows
