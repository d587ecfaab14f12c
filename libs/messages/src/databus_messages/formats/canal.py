"""What canal's formats have in common: options, value text and `sqlType`.

Values are canal's where it is right: all are strings, ENUM and SET are index and mask, BLOB, BINARY and geometries are
bytes mapped to U+0000…U+00FF (ISO-8859-1), FLOAT and DOUBLE are written as Java does. Where canal is wrong, ours are
right: text of any character set is the text, DECIMAL keeps its scale, BINARY(n) has all its n bytes, TIMESTAMP is in
the zone that `time_zone` tells and not in that of a process. MariaDB's UUID and INET types, and VECTOR, of which canal
knows nothing, are bytes like BLOB.
"""

from datetime import UTC, datetime
from functools import partial
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from databus.events import Action, Column, Table
from databus_messages.formats.base import Options
from databus_messages.formats.columns import FLOATS, TEXT
from databus_messages.formats.row_texts import LATIN_1, Converter, JavaFloat

EVENT_TYPES = {Action.INSERT: "INSERT", Action.UPDATE: "UPDATE", Action.DELETE: "DELETE"}

#: java.sql.Types; what is not here is BLOB
_SQL_TYPES = {
    "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "decimal": 3, "float": 7, "double": 8,
    "bit": -7, "enum": 4, "set": -7, "year": 12, "date": 91, "time": 92, "datetime": 93, "timestamp": 93,
    **dict.fromkeys(TEXT, 2005), "char": 1, "varchar": 12, "json": 12,
}  # fmt: skip
_BLOB = 2004
_NULL_JSON = 1111
#: unsigned values from here on have the other type
_PROMOTIONS = {"tinyint": (2**7, 5), "smallint": (2**15, 4), "int": (2**31, -5), "bigint": (2**63, 3)}


def _existing(zone: str) -> str:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"{zone!r} is no time zone: use a name like Asia/Shanghai or UTC") from error
    return zone


class CanalOptions(Options):
    """Options of canal's formats."""

    #: of TIMESTAMP values, which canal gives in the zone of its own process
    time_zone: Annotated[str, AfterValidator(_existing)] = "UTC"


class SqlType(NamedTuple):
    """The `sqlType` of a column's values."""

    usual: int
    null: int
    #: unsigned values from `limit` on have the one `above`; 0: none has
    limit: int = 0
    above: int = 0

    @property
    def varies(self) -> bool:
        """Say whether values have different ones."""
        return self.limit > 0 or self.null != self.usual

    def of(self, cell: bytes | None) -> int:
        """Give that of a value."""
        usual, null, limit, above = self
        if cell is None:
            return null
        return above if limit and int(cell) >= limit else usual


def is_binary(column: Column) -> bool:
    """Say whether the values are bytes, and not text."""
    return column.type not in _SQL_TYPES


def sql_type(column: Column) -> SqlType:
    """Give the `sqlType` of a column's values."""
    usual = _SQL_TYPES.get(column.type, _BLOB)
    if column.unsigned and column.type in _PROMOTIONS:
        return SqlType(usual, usual, *_PROMOTIONS[column.type])
    return SqlType(usual, _NULL_JSON if column.type == "json" else usual)


def converter(column: Column, time_zone: str) -> Converter | None:
    """Give what makes the text of a column's values; None where it is the canonical one."""
    if column.type in FLOATS:
        return JavaFloat(single=column.type == "float")
    if column.type == "timestamp" and time_zone != "UTC":
        return partial(_local, ZoneInfo(time_zone))
    return LATIN_1 if is_binary(column) else None


def _local(zone: ZoneInfo, cell: bytes) -> str:
    text = cell.decode()
    if text.startswith("0000"):
        return text
    moment = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC).astimezone(zone)
    return moment.strftime("%Y-%m-%d %H:%M:%S") + text[19:]


def pk_names(table: Table) -> list[str] | None:
    """Name the primary key's columns, in the table's order."""
    return [table.columns[place].name for place in sorted(table.primary_key)] or None
