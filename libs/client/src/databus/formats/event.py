"""What a record says, in a format other than `databus`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from databus.change import Rows
from databus_binlog import Position
from databus_core.events import Action, Column, Table

#: schema and table → the options of the format with which its changes are published
OptionsOf: TypeAlias = Callable[[str, str], Mapping[str, Any]]


class Event(msgspec.Struct, frozen=True):
    """Changes of rows, or a statement."""

    action: Action
    rows: Rows
    #: images as `rows` reads them; of updates, those before and after alternate; empty for a statement
    images: list[Any] = []
    #: text of a statement
    query: str | None = None
    #: START of the event in the binlog; of rows of a backfill, where the stream has them. None if the record lacks it
    position: Position | None = None
    is_snapshot: bool = False
    #: of the transaction; empty if the record lacks it
    gtid: str = ""


def position_at(file: str, offset: int) -> Position | None:
    """Return the position in a file; None without a file."""
    return Position("", file, offset) if file else None


def table_of(schema: str, name: str, columns: Sequence[Column], key: Sequence[str]) -> Table:
    """Return a definition as far as a record names it; the names in `key` may be in lower case."""
    index = {column.name.lower(): number for number, column in enumerate(columns)}
    primary_key = tuple(index[each.lower()] for each in key if each.lower() in index)
    return Table(schema=schema, name=name, columns=tuple(columns), primary_key=primary_key)


def no_texts(table: Table, format_name: str) -> LookupError:
    """Return the error for exact texts that a format lacks."""
    return LookupError(
        f"{table.full_name} is published in format {format_name}, which does not have exact texts: publish the table "
        "in format databus"
    )
