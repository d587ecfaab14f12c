"""The same change decodes to the same row from every format, except for what a format loses by design."""

import json
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product

import pytest

from databus_binlog import FormatDescription
from databus_cli.binlog.definitions import NoDefinitions
from databus_cli.binlog.translation import Translation
from databus_core.events import Action, Column, RowsEvent, Table, TableDefinition
from databus_core.settings import Source
from databus_wire.packed_rows import PackedRows
from devstack import Kind
from golden.cases import CASES, KINDS, Case, events, records
from golden.readers import LOSSY, READERS, Loss, RowChange, Texts, json_line


@cache
def binlog_changes(kind: Kind) -> tuple[list[RowChange], Mapping[str, list[dict[str, Column]]]]:
    """Return the changes in the golden binlog, and the columns of each version of each table."""
    found: list[RowChange] = []
    versions: dict[str, list[dict[str, Column]]] = {}
    translation: Translation | None = None
    tables_by_fingerprint: dict[str, Table] = {}
    for event, tables in events(kind):
        if isinstance(event, FormatDescription):
            translation = Translation(event, Source(), NoDefinitions(), lenient=False, inside=False)
        assert translation
        for change in translation.translate(event, tables):
            if isinstance(change, TableDefinition):
                tables_by_fingerprint[change.table.fingerprint] = change.table
            if isinstance(change, RowsEvent):
                table = tables_by_fingerprint[change.table]
                columns = {column.name: column for column in table.columns}
                if columns not in versions.setdefault(table.name, []):
                    versions[table.name].append(columns)
                rows = [dict(zip(columns, row, strict=True)) for row in PackedRows(change.rows)]
                found += images(table.name, change.action, rows)
    return found, versions


def images(table: str, action: Action, rows: list[Texts]) -> Iterator[RowChange]:
    match action:
        case Action.INSERT:
            yield from (RowChange(table, None, row) for row in rows)
        case Action.DELETE:
            yield from (RowChange(table, row, None) for row in rows)
        case _:
            yield from (RowChange(table, *pair) for pair in zip(rows[::2], rows[1::2], strict=True))


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (kind, case)
        for kind, case in product(KINDS, CASES)
        if not case.table and ("compat", "strict") not in case.options
    ],
    ids=str,
)
def test_every_format_decodes_to_the_same_rows(kind: Kind, case: Case):
    expected, versions = binlog_changes(kind)

    def columns(table: str, count: int | None = None) -> dict[str, Column]:
        """Return the columns of a table by name: of all its versions, or of those with `count` columns."""
        matching = [version for version in versions[table] if count in {None, len(version)}]
        return {name: column for version in matching for name, column in version.items()}

    lines = map(json_line, records(kind, case).splitlines())
    found = list(READERS[case.format](lines, columns))
    if case.format.startswith("debezium-"):
        expected = list(split_key_changes(expected))
    assert [change.table for change in found] == [change.table for change in expected]
    for decoded, logged in zip(found, expected, strict=True):
        of_table = columns(logged.table)
        for decoded_row, row in ((decoded.before, logged.before), (decoded.after, logged.after)):
            lost = lost_columns(LOSSY.get(case.format), row, of_table)
            assert comparable(decoded_row, lost, of_table) == comparable(row, lost, of_table)


def split_key_changes(changes: list[RowChange]) -> Iterator[RowChange]:
    """Split each update that changes the key into a delete and an insert, as Debezium does.

    In the golden binlogs only `orders` has such updates. They change `number`, the first column of its key.
    """
    for change in changes:
        if (
            change.table == "orders"
            and change.before
            and change.after
            and change.before["number"] != change.after["number"]
        ):
            yield RowChange(change.table, change.before, None)
            yield RowChange(change.table, None, change.after)
        else:
            yield change


def comparable(row: Texts | None, lost: set[str], columns: Mapping[str, Column]) -> dict[str, object] | None:
    """Return the values that are not lost, in a form that can be compared.

    Formats write the same number or JSON document differently.
    """
    if row is None:
        return None
    return {name: value_of(columns[name], value) for name, value in row.items() if name not in lost}


def lost_columns(loss: Loss | None, row: Texts | None, columns: Mapping[str, Column]) -> set[str]:
    """Return the names of the columns whose values in this row the format does not keep."""
    if row is None or loss is None:
        return set()
    values = {name: value for name, value in row.items() if columns[name].type in loss.types and value is not None}
    return {name for name, value in values.items() if loss.applies(value)}


def value_of(column: Column, value: bytes | None) -> object:
    if value is None:
        return None
    match column.type:
        case "float":
            return struct.pack("f", float(value))
        case "double":
            return float(value)
        case "json":
            return json.loads(value)
        case "year":
            return int(value)
    return value
