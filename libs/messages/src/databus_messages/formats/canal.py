"""The common parts of canal's formats: options, event types, binary and key columns, and the `sqlType` of values."""

from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from databus_core.events import Action, Column, Table
from databus_messages.formats.base import Options
from databus_messages.formats.columns import TEXT

EVENT_TYPES = {Action.INSERT: "INSERT", Action.UPDATE: "UPDATE", Action.DELETE: "DELETE"}

#: column type → `sqlType`, a value of java.sql.Types; every other type is a BLOB
_SQL_TYPES = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "decimal": 3, "float": 7, "double": 8,
    "bit": -7, "enum": 4, "set": -7, "year": 12, "date": 91, "time": 92, "datetime": 93, "timestamp": 93,
    **dict.fromkeys(TEXT, 2005), "char": 1, "varchar": 12, "json": 12,
}  # fmt: skip
_BLOB = 2004
#: column type → `sqlType` of NULL, if it differs from that of values: OTHER for a JSON column, BLOB for a SET
_NULL_TYPES = {"json": 1111, "set": _BLOB}
#: unsigned type → `SqlType.limit` and `SqlType.widened`
_WIDENED = {"tinyint": (2**7, 5), "smallint": (2**15, 4), "int": (2**31, -5), "bigint": (2**63, 3)}


def _existing_zone(zone: str) -> str:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"{zone!r} is not a time zone: use a name like Asia/Shanghai or UTC") from error
    return zone


class CanalOptions(Options):
    """Options of canal's formats."""

    #: time zone of TIMESTAMP values; canal itself uses that of its process
    time_zone: Annotated[str, AfterValidator(_existing_zone)] = "UTC"


class SqlType(NamedTuple):
    """The `sqlType` of a column's values; canal derives it from each value."""

    #: the type of all values except NULL and those from `limit` on
    default: int
    #: the type of NULL
    null: int
    #: the lowest value, in an unsigned column, that has the type `widened`; 0 if there is none
    limit: int = 0
    #: the type of values from `limit` on
    widened: int = 0

    @property
    def varies(self) -> bool:
        """Whether the type depends on the value."""
        return self.limit > 0 or self.null != self.default

    def of(self, cell: bytes | None) -> int:
        """Return the `sqlType` of one value."""
        if cell is None:
            return self.null
        return self.widened if self.limit and int(cell) >= self.limit else self.default


def sql_type(column: Column) -> SqlType:
    """Return the `sqlType` of a column's values."""
    default = _SQL_TYPES.get(column.type, _BLOB)
    if column.unsigned and column.type in _WIDENED:
        return SqlType(default, default, *_WIDENED[column.type])
    return SqlType(default, _NULL_TYPES.get(column.type, default))


def is_binary(column: Column) -> bool:
    """Whether canal treats the values as bytes, not text."""
    return column.type not in _SQL_TYPES


def pk_names(table: Table) -> list[str] | None:
    """Return the names of the primary key's columns, in the table's order; None without a primary key."""
    return [table.columns[index].name for index in sorted(table.primary_key)] or None
