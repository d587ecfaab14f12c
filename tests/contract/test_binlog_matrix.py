"""Every value of the matrix (common/column_types.py) is read as the server prints it, in every mode of logging."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import msgspec
import pytest

from common.binlog_rows import read_rows
from common.column_types import Table, tables
from common.connections import Print, printing
from databus_binlog import ABSENT, FieldType, Position, TableMap, Value
from databus_binlog.session import Session
from devstack import Kind, Server

Variables = dict[str, str | int]


class Mode(NamedTuple):
    """A way in which a kind of server logs."""

    kind: Kind
    variables: Variables  #: global variables
    event_type: str = ""  #: a type of event that the log must contain, as the server names it

    def __str__(self) -> str:
        return "-".join([self.kind, *(f"{name}={value}" for name, value in self.variables.items())])


MINIMAL: Variables = {"binlog_row_image": "MINIMAL"}
NOBLOB: Variables = {"binlog_row_image": "NOBLOB"}
UNNAMED: Variables = {"binlog_row_metadata": "MINIMAL"}
UNDESCRIBED: Variables = {"binlog_row_metadata": "NO_LOG"}
UNCHECKED: Variables = {"binlog_checksum": "NONE"}
COMPRESSED: Variables = {"log_bin_compress": "ON", "log_bin_compress_min_len": 10}
PAYLOAD: Variables = {"binlog_transaction_compression": "ON"}
PARTIAL_JSON: Variables = {"binlog_row_value_options": "PARTIAL_JSON"}
MODES = [
    *(Mode(*mode) for mode in product(("mariadb", "mysql"), ({}, MINIMAL, NOBLOB, UNNAMED, UNCHECKED))),
    Mode("mariadb", UNDESCRIBED),
    Mode("mariadb", {"mysql56_temporal_format": "OFF"}),
    Mode("mariadb", COMPRESSED, "Write_rows_compressed_v1"),
    Mode("mariadb", COMPRESSED | MINIMAL | UNDESCRIBED | UNCHECKED, "Write_rows_compressed_v1"),
    Mode("mysql", {"gtid_mode": "OFF"}, "Anonymous_Gtid"),
    Mode("mysql", PAYLOAD, "Transaction_payload"),
    Mode("mysql", PARTIAL_JSON, "Update_rows_partial"),
    Mode("mysql", PAYLOAD | PARTIAL_JSON | UNNAMED | UNCHECKED, "Transaction_payload"),
]
#: variables that can make the log incomplete: then the rest is read from information_schema
INCOMPLETE = {"binlog_row_metadata", "mysql56_temporal_format"}
#: the values through which MySQL's gtid_mode must go to become OFF or ON
GTID_MODES = {"OFF": ["ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"], "ON": ["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]}
#: with mysql56_temporal_format=OFF MariaDB logs the old forms of these types, without the number of fraction digits
OLD_TEMPORAL = {FieldType.TIME, FieldType.DATETIME, FieldType.TIMESTAMP}


class Image(NamedTuple):
    """A row image that the log must have."""

    values: list[bytes | None]  #: the primary key and then the other columns
    absent: set[int]  #: numbers of the columns that the image lacks; 0 is c0, the first after the key


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
async def run(own: Server, admin: Session, schema: str, mode: Mode) -> AsyncIterator[Print]:
    """Run statements in the test's schema while the server logs in this mode."""
    before = {name: (await admin.query(f"SELECT @@GLOBAL.{name}"))[0][0] for name in mode.variables}
    await set_all(admin, mode.variables)
    async with printing(own) as run:
        await run(f"USE {schema}")
        yield run
    await set_all(admin, before)


async def set_all(admin: Session, variables: Variables) -> None:
    """Set global variables."""
    for name, value in variables.items():
        for step in GTID_MODES[str(value)] if name == "gtid_mode" else [value]:
            await admin.query(f"SET GLOBAL {name} = {step!r}")


@pytest.mark.parametrize(
    ("own", "mode"), [pytest.param(mode.kind, mode, id=str(mode)) for mode in MODES], indirect=["own"]
)
async def test_every_value_reads_as_the_server_prints_it(
    own: Server, admin: Session, schema: str, run: Print, mode: Mode
):
    start = await admin.current_position()
    expected = await change(run, tables(own.kind), str(mode.variables.get("binlog_row_image", "FULL")))
    types = {kind for _, _, kind, *_ in await run(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")}
    assert mode.event_type.encode() in {b"", *types}

    describe = await described(admin, schema) if mode.variables.keys() & INCOMPLETE else None
    read = await read_rows(own, start, schema, describe)
    assert read == await read_rows(own, Position(file=start.file, offset=start.offset), schema, describe)
    images = defaultdict(list)
    for table, rows in read:
        images[table.name] += rows.images()
        assert [column.name for column in table.columns[1:]] == [f"c{n}" for n in range(len(table.columns) - 1)]
        assert rows.complete == all(value is not ABSENT for image in rows.images() for value in image)
    for table in tables(own.kind):
        assert not list(differences(table, images[table.name], expected[table.name]))


async def change(run: Print, matrix: Sequence[Table], image: str) -> dict[str, list[Image]]:
    """Insert, update and delete every row in one transaction; return the images that the log must have of each table.

    `image` is the value of binlog_row_image.
    """
    expected = {}
    for statement in (statement for table in matrix for statement in table.creation):
        await run(statement)
    await run("BEGIN")
    for table in matrix:
        await run(table.insert)
        inserted = await run(table.select)
        for row in range(table.rows):
            await run(table.update(row))
        updated = await run(table.select)
        await run(f"DELETE FROM {table.name} ORDER BY {table.key}")

        blobs = {number for number in table.settable if table.columns[number].blob}
        # the columns that before images lack; after images lack them, too, except those that the statement sets
        absent = {"FULL": set(), "MINIMAL": set(table.settable), "NOBLOB": blobs}[image]
        expected[table.name] = [Image(values, set()) for values in inserted]
        for row, (before, after) in enumerate(zip(inserted, updated, strict=True)):
            expected[table.name] += [Image(before, absent), Image(after, absent.difference(table.updated(row)))]
        expected[table.name] += [Image(values, absent) for values in updated]
    await run("COMMIT")
    return expected


def differences(table: Table, found: list[list[Value]], expected: list[Image]) -> Iterator[tuple[object, ...]]:
    """Return the values that differ from the server's text, and the columns that are wrongly absent or present.

    A column that the server generates may be absent or present.
    """
    for image, ((_, *values), (printed, absent)) in enumerate(zip(found, expected, strict=True)):
        for number, (column, value, text) in enumerate(zip(table.columns, values, printed[1:], strict=True)):
            if (value is ABSENT) != (number in absent) and not column.generated:
                yield table.name, image, column.type, "absent" if value is ABSENT else "not absent"
            elif value is not ABSENT and value != text:
                yield table.name, image, column.type, value, text


async def described(admin: Session, schema: str) -> Callable[[TableMap], TableMap]:
    """Return a function that adds to a table map what only information_schema has."""
    listed = defaultdict(list)
    for table, *column in await admin.query(
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, DATETIME_PRECISION"
        " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s ORDER BY TABLE_NAME, ORDINAL_POSITION",
        (schema,),
    ):
        listed[table].append(column)

    def describe(table: TableMap) -> TableMap:
        columns = [
            msgspec.structs.replace(
                column,
                name=name,
                unsigned="unsigned" in kind,
                charset=charset or "binary",
                metadata=digits if column.type in OLD_TEMPORAL else column.metadata,
            )
            for column, (name, kind, charset, digits) in zip(table.columns, listed[table.name], strict=False)
        ]
        hidden = table.hidden + len(table.columns) - len(columns)  # MariaDB's hashes of unique TEXT and BLOB columns
        return msgspec.structs.replace(table, columns=tuple(columns), hidden=hidden)

    return describe
