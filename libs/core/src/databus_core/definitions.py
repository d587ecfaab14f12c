"""The definition of a table, as messages in the `databus` format have it."""

import re

import msgspec

from databus_core.events import Column, Table

_RAW_TYPE = re.compile(r"(?P<kind>\w+)\s*(?:\((?P<size>\d+)(?:,(?P<scale>\d+))?\))?")


class _Column(msgspec.Struct, frozen=True):
    Name: str
    RawType: str
    EnumValues: tuple[str, ...] | None = None
    SetValues: tuple[str, ...] | None = None


class _Table(msgspec.Struct, frozen=True):
    Schema: str
    Name: str
    Columns: tuple[_Column, ...]
    PKColumns: tuple[int, ...] | None = None


_decoder = msgspec.json.Decoder(_Table)


def decode_definition(text: str | bytes) -> Table:
    """Decode the member `Table` of a message. Raises msgspec.DecodeError."""
    found = _decoder.decode(text)
    return Table(
        schema=found.Schema,
        name=found.Name,
        columns=tuple(
            Column(
                name=column.Name,
                type="",
                raw_type=column.RawType,
                values=column.EnumValues or column.SetValues or (),
            )
            for column in found.Columns
        ),
        primary_key=found.PKColumns or (),
    )


def encode_definition(table: Table) -> str:
    """Encode what `decode_definition` decodes."""
    columns = tuple(
        _Column(
            column.name,
            column.raw_type,
            EnumValues=column.values if column.raw_type.lower().startswith("enum") else None,
            SetValues=column.values if column.raw_type.lower().startswith("set") else None,
        )
        for column in table.columns
    )
    return msgspec.json.encode(_Table(table.schema, table.name, columns, table.primary_key or None)).decode()


def key_columns(table: Table) -> list[str]:
    """Return the names of the primary key's columns, in key order."""
    return [table.columns[index].name for index in table.primary_key]


def sized_type(column: Column) -> tuple[str, int, int]:
    """Return a column's type, with its size and its scale, 0 without one."""
    match = _RAW_TYPE.match(column.raw_type.lower())
    if match is None:
        return column.raw_type.lower(), 0, 0
    kind = {"integer": "int", "numeric": "decimal"}.get(match["kind"], match["kind"])
    return kind, int(match["size"] or 0), int(match["scale"] or 0)
