"""DML that was logged as a statement: the doubt names the tables that changed, if a real server shows them."""

import secrets
from collections.abc import AsyncIterator

import pytest

from common.connections import Execute, session_on
from databus_binlog import Query
from databus_changes.ddl.dialect import Dialect
from databus_changes.doubts import Doubt
from databus_changes.narrowing import narrowed
from databus_changes.statements import StatementReader
from databus_changes.tracker import TableTracker
from databus_core.kafka_history import SchemaHistory
from databus_core.settings import Source
from devstack import Server

TABLES = [
    "CREATE TABLE t (id INT PRIMARY KEY)",
    "CREATE TABLE u (id INT PRIMARY KEY)",
    "CREATE TABLE c (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
    "CREATE TABLE not_captured (id INT PRIMARY KEY)",
    "CREATE TABLE x (id INT PRIMARY KEY)",
    "CREATE TRIGGER fill AFTER INSERT ON x FOR EACH ROW INSERT INTO u VALUES (NEW.id)",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE y (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TRIGGER fill_too AFTER DELETE ON y FOR EACH ROW DELETE FROM u",
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE TABLE part (id INT) ENGINE=MyISAM",
    "CREATE TABLE whole (id INT) ENGINE=MERGE UNION=(part)",
]
#: a statement → the tables in doubt; None: any table of the schema
STATEMENTS = {
    "INSERT INTO u VALUES (1)": {"u"},
    "DELETE FROM t WHERE id = 1": {"t", "c"},
    "UPDATE t, not_captured SET t.id = 2 WHERE t.id = not_captured.id": {"t", "c"},
    "INSERT INTO x VALUES (1)": None,
    "DELETE FROM parent": None,
    "INSERT INTO v VALUES (3)": None,
    "DELETE FROM whole": None,
    "DELETE FROM missing": None,
    "INSERT INTO u VALUES (f(1))": None,
}


@pytest.fixture
async def account(source: Server, execute: Execute) -> AsyncIterator[str]:
    name = f"u_{secrets.token_hex(4)}"
    await execute(f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'")
    yield name
    await execute(f"DROP USER {name}@'%'")


@pytest.fixture
async def tables(execute: Execute) -> None:
    for statement in TABLES:
        await execute(statement)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("scope", ["*.*", "`{pattern}`.*", "{schema}.{table}"])
async def test_the_doubt_names_the_tables_that_may_have_changed(
    source: Server, schema: str, execute: Execute, account: str, scope: str
) -> None:
    for table in "t", "u", "c", "not_captured", "x", "parent", "y", "v", "part", "whole":
        granted = scope.format(pattern=schema.replace("_", r"\_"), schema=schema, table=table)
        await execute(f"GRANT SELECT, TRIGGER ON {granted} TO {account}@'%'")
    async with session_on(source, user=account, password="secret") as session:
        for statement, expected in STATEMENTS.items():
            doubt = await narrowed(doubt_about(statement, schema), session, captured(schema))
            if expected is None:
                assert (doubt.tables, doubt.schemas) == (frozenset(), {schema}), statement
                assert f"may have changed tables of {schema} without" in str(doubt.error)
            else:
                assert (doubt.tables, doubt.schemas) == ({(schema, name) for name in expected}, frozenset()), statement
                named = ", ".join(f"{schema}.{name}" for name in sorted(expected))
                assert f"a statement at binlog.7:4 may have changed {named} without logging the rows" in str(
                    doubt.error
                )


@pytest.mark.usefixtures("tables")
async def test_an_account_that_may_not_see_triggers_proves_nothing(
    source: Server, schema: str, execute: Execute, account: str
) -> None:
    await execute(f"GRANT SELECT ON *.* TO {account}@'%'")
    await execute(f"GRANT TRIGGER ON {schema}.t TO {account}@'%'")
    doubt = doubt_about("INSERT INTO u VALUES (1)", schema)
    async with session_on(source, user=account, password="secret") as session:
        assert await narrowed(doubt, session, captured(schema)) == doubt


def captured(schema: str) -> Source:
    return Source(include=[f"{schema}.*"], exclude=["*.not_captured"])


def doubt_about(statement: str, schema: str) -> Doubt:
    found: list[Doubt] = []
    dialect = Dialect(flavor="mysql", integer_widths=False)
    tracker = TableTracker(SchemaHistory(), dialect, lookup=None, tracks=captured(schema).captures_some)
    event = Query(
        time=0, server_id=1, file="binlog.7", start=4, end=9, schema=schema, query=statement.encode(), thread_id=1,
        error_code=0, xid=None,
    )  # fmt: skip
    StatementReader(captured(schema), tracker, found.append).read(event)
    [doubt] = found
    return doubt
