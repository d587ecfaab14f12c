"""The definition of a table, as messages in the `databus` format have it."""

import msgspec

from databus_core.events import Column, Table
from databus_spark.errors import TableParked
from databus_spark.types import Columns, TypeOptions, lake_type

#: name of the mirror's column with the sequence of the change that wrote the row (ADR 18); empty: a dump's row
SEQUENCE = "_seq"

#: names of columns that the change log and mirrors have, and that queries use
_RESERVED = {SEQUENCE, "_action", "_row", "_topic", "_partition", "_offset", "_last", "cells"}


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


def same_rows(one: Table, other: Table) -> bool:
    """Return whether rows of both definitions have the same columns, types and key."""
    return one.columns == other.columns and one.primary_key == other.primary_key


def mirror_columns(table: Table, types: TypeOptions) -> Columns:
    """Return the columns of a table's mirror, with their types. Raises TableParked if it has a reserved name."""
    if reserved := sorted({column.name.lower() for column in table.columns} & _RESERVED):
        raise TableParked(f"it has a column {reserved[0]}, a name that the lake uses", heals=False)
    return {column.name: lake_type(column, types) for column in table.columns} | {SEQUENCE: "string"}


def key_columns(table: Table) -> list[str]:
    """Return the names of the primary key's columns, in key order."""
    return [table.columns[index].name for index in table.primary_key]
