"""The engine mysql-replication raises an error where its library would misread the log, and only there."""

import re
from typing import NamedTuple

import pytest

from common.column_types import Column, tables
from common.connections import printing
from contract.engines.dumps import LIBRARY
from contract.engines.misread import TYPES, VALUES, expected_refusal, is_misread_type
from databus_binlog import InvalidPosition, Position, UnknownEvent, UnsupportedColumn, Xid
from devstack import Kind, Server

BOTH_KINDS: tuple[Kind, ...] = ("mariadb", "mysql")


class MisreadEvent(NamedTuple):
    """An event that the library misreads."""

    kinds: tuple[Kind, ...]  #: the servers that can log it
    statements: list[str]  #: on the table t (id INT PRIMARY KEY, j JSON NOT NULL); the last one logs the event
    message: str  #: pattern of the error message


MISREAD_EVENTS: dict[str, MisreadEvent] = {
    # The library leaves them out.
    "compressed transactions": MisreadEvent(
        ("mysql",),
        ["SET binlog_transaction_compression = ON", "INSERT INTO t VALUES (1, '[]')"],
        "type 40",
    ),
    "compressed rows": MisreadEvent(
        ("mariadb",),
        ["SET GLOBAL log_bin_compress = ON", "INSERT INTO t VALUES (1, JSON_QUOTE(REPEAT('x', 500)))"],
        "type 166",
    ),
    # It reads one difference and drops the others.
    "JSON as differences": MisreadEvent(
        ("mysql",),
        ["SET binlog_row_value_options = PARTIAL_JSON", "UPDATE t SET j = JSON_SET(j, '$.a', 1, '$.b', 2)"],
        "type 39",
    ),
    # It does not know the status variable 21.
    "statements that change rows": MisreadEvent(
        ("mysql",),
        ["SET binlog_format = STATEMENT", "INSERT INTO t VALUES (1, '[]')"],
        "StatusVariableMismatch",
    ),
    # It does not know the status variable 130.
    "ALTER in two phases": MisreadEvent(
        ("mariadb",),
        ["SET binlog_alter_two_phase = ON", "ALTER TABLE t ADD more INT"],
        "StatusVariableMismatch",
    ),
    # It reads every statement as UTF-8.
    "statements in Latin-1": MisreadEvent(
        BOTH_KINDS,
        ["SET NAMES latin1", "ALTER TABLE t COMMENT 'é'"],
        "can't read the statement",
    ),
    # It misreads lengths above 127.
    "long names": MisreadEvent(
        BOTH_KINDS,
        [f"ALTER TABLE t ADD {'日' * 50} INT", "INSERT INTO t VALUES (1, '[]', 1)"],
        "AssertionError",
    ),
    "long labels": MisreadEvent(
        BOTH_KINDS,
        [f"ALTER TABLE t ADD more ENUM('{'x' * 200}')", "INSERT INTO t VALUES (1, '[]', 1)"],
        "AssertionError",
    ),
}


async def test_each_value_reads_as_the_server_prints_it_or_is_refused(own, schema, queries, read):
    columns = [
        column
        for table in tables(own.kind)
        if table.name != "derived"
        # Every fourth shape of a DECIMAL is enough here: test_binlog_matrix.py reads them all.
        for column in (table.columns[::4] if table.name == "decimals" else table.columns)
        if not column.generated
    ]
    start = await queries.current_position()
    printed = await insert_each(own, schema, columns)
    ours = await read("native", start)
    assert [image for _, _, [[image]] in ours.rows] == [text for _, text in printed]
    commits = [Position(file=event.file, offset=event.end) for event in ours.events if isinstance(event, Xid)]

    # Each refusal ends the dump: the next dump starts after the transaction of the refused value.
    done, refused = 0, set()
    while done < len(printed):
        log = await read(LIBRARY, commits[done - 1] if done else start)
        values = [image for _, _, [[image]] in log.rows]
        expected = printed[done : done + len(values)]
        assert values == [text for _, text in expected]
        assert not any(expected_refusal(column, text) for column, text in expected)
        done += len(values)
        if done < len(printed):
            column, text = printed[done]
            message = expected_refusal(column, text)
            assert message
            assert isinstance(log.failure, UnsupportedColumn)
            assert re.search(message, str(log.failure))
            refused.add(message)
            done += 1
            if is_misread_type(column):  # all of its values are refused; one is enough
                while done < len(printed) and printed[done][0] is column:
                    done += 1
    only_on_the_other_kind = "COMPRESSED" if own.kind == "mysql" else "VECTOR|JSON"
    messages = {wrong.message for wrong in (*VALUES, *TYPES)}
    assert refused == {message for message in messages if not re.search(only_on_the_other_kind, message)}


async def insert_each(own: Server, schema: str, columns: list[Column]) -> list[tuple[Column, bytes | None]]:
    """Insert each value of each column in a transaction of its own; return column and printed text of each."""
    printed: list[tuple[Column, bytes | None]] = []
    async with printing(own) as run:
        await run(f"USE {schema}")
        for number, column in enumerate(columns):
            await run(f"CREATE TABLE t{number} (c {column.type})")
        for number, column in enumerate(columns):
            for value in [*column.values, "NULL"]:
                await run(f"INSERT INTO t{number} VALUES ({value})")
            printed += [(column, text) for (text,) in await run(f"SELECT {column.text('c')} FROM t{number}")]
    return printed


@pytest.mark.parametrize(
    ("own", "what"), [(kind, what) for what, event in MISREAD_EVENTS.items() for kind in event.kinds], indirect=["own"]
)
async def test_an_event_that_the_library_misreads_is_refused(own, execute, queries, read, what):
    await execute("CREATE TABLE t (id INT PRIMARY KEY, j JSON NOT NULL)")
    start = await queries.current_position()
    await execute("""INSERT INTO t VALUES (0, '{"a": "xxxxxxxxxx", "b": "xxxxxxxxxx"}')""")
    start = Position(file=start.file, offset=start.offset)
    readable = await read("native", start)
    try:
        for statement in MISREAD_EVENTS[what].statements:
            await execute(statement)
    finally:
        await execute("SET GLOBAL log_bin_compress = OFF" if own.kind == "mariadb" else "SET gtid_next = AUTOMATIC")
    ours, theirs = await read("native", start), await read(LIBRARY, start)
    assert ours.failure is None
    assert isinstance(theirs.failure, (UnknownEvent, UnsupportedColumn))
    assert re.search(MISREAD_EVENTS[what].message, str(theirs.failure))
    assert len(readable.events) <= len(theirs.events) < len(ours.events)
    assert theirs.comparable == ours.comparable[: len(theirs.events)]


async def test_files_whose_checksums_differ_from_the_servers_setting_are_refused(execute, queries, read):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("SET GLOBAL binlog_checksum = NONE")
    try:
        start = await queries.current_position()
        await execute("INSERT INTO t VALUES (1)")
        assert (await read(LIBRARY, start)).rows == (await read("native", start)).rows
    finally:
        await execute("SET GLOBAL binlog_checksum = CRC32")
    assert (await read("native", start)).failure is None
    assert "binlog_checksum" in str((await read(LIBRARY, start)).failure)


@pytest.mark.parametrize("own", ["mysql"], indirect=True)
async def test_tagged_gtids_are_refused_in_the_log_and_in_a_position(execute, queries, read):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1)")
    await execute("SET gtid_next = 'AUTOMATIC:tag'")
    await execute("INSERT INTO t VALUES (2)")
    log = await read(LIBRARY, start)
    assert isinstance(log.failure, UnknownEvent)
    assert log.rows == [("t", "insert", [[b"1"]])]
    tagged = await queries.current_position()
    with pytest.raises(InvalidPosition, match="can't read the GTID set"):
        await read(LIBRARY, tagged)
    assert (await read(LIBRARY, Position(file=tagged.file, offset=tagged.offset))).failure is None
