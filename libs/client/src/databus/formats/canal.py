"""Decodes the format `canal-json`, whose strings are exact texts of values, or can be converted to them."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from databus.change import Texts, Values
from databus.formats.event import Event, OptionsOf, no_texts, table_of
from databus.values import converter, is_bytes
from databus_binlog import float_text
from databus_core.definitions import sized_type
from databus_core.errors import SchemaMismatch
from databus_core.events import Action, Column, Table
from databus_core.literals import labels

#: how values begin
PREFIXES = (b'{"data":',)

_ROWS = {"INSERT": Action.INSERT, "UPDATE": Action.UPDATE, "DELETE": Action.DELETE}
#: types of statements that are no ALTER
_STATEMENTS = {"CREATE": Action.CREATE, "ERASE": Action.DROP, "TRUNCATE": Action.TRUNCATE}

_Image: TypeAlias = dict[str, str | None]
_Text: TypeAlias = Callable[[str], bytes]


class _Message(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    database: str
    table: str
    type: str
    is_ddl: bool
    sql: str
    data: list[_Image] | None = None
    old: list[_Image] | None = None
    mysql_type: dict[str, str] | None = None
    pk_names: list[str] | None = None
    gtid: str = ""


_decode = msgspec.json.Decoder(_Message).decode


class CanalRows:
    """Reads row images: objects of strings."""

    def __init__(self, table: Table, time_zone: str) -> None:
        self.table = table
        #: whether a TIMESTAMP may be one of two moments: daylight saving time ends in this zone
        self._is_local = time_zone != "UTC" and any(sized_type(each)[0] == "timestamp" for each in table.columns)
        self._texts = {column.name: _text(column) for column in table.columns}
        self._values: dict[str, Callable[[str], Any]] = {
            column.name: _value(column, self._texts[column.name], time_zone) for column in table.columns
        }
        self._are_bytes = {column.name for column in table.columns if is_bytes(column)}

    def values(self, image: _Image) -> Values:
        """Return the Python values. Raises SchemaMismatch if a text does not fit its column."""
        try:
            return {name: None if cell is None else self._values[name](cell) for name, cell in image.items()}
        except (ValueError, ArithmeticError, LookupError) as error:
            text = f"a value of {self.table.full_name} does not fit its column: {type(error).__name__}"
            raise SchemaMismatch(text) from None  # the cause quotes the value

    def texts(self, image: _Image) -> Texts:
        """Return the exact texts. Raises LookupError if a TIMESTAMP is not in UTC."""
        if self._is_local:
            raise no_texts(self.table, "canal-json with a time zone")
        texts = {name: None if cell is None else self._texts[name](cell) for name, cell in image.items()}
        return {
            name: text if text is None or name in self._are_bytes else text.decode() for name, text in texts.items()
        }


class CanalDecoder:
    """Decodes flat messages of rows and of statements on tables."""

    def __init__(self, options_of: OptionsOf) -> None:
        self._options_of = options_of

    def event(self, key: bytes | None, value: bytes) -> Event | None:
        """Decode a message; None for a statement on a database. Raises SchemaMismatch."""
        try:
            message = _decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SchemaMismatch(f"a record is not a message of format canal-json: {error}") from error
        if not message.table:
            return None
        types = tuple((message.mysql_type or {}).items())
        zone = self._options_of(message.database, message.table).get("time_zone", "UTC")
        rows = _rows(message.database, message.table, types, tuple(message.pk_names or ()), zone)
        if message.is_ddl:
            return Event(_STATEMENTS.get(message.type, Action.ALTER), rows, query=message.sql, gtid=message.gtid)
        return Event(_ROWS[message.type], rows, _images(message), gtid=message.gtid)


def _images(message: _Message) -> list[_Image]:
    after = message.data or []
    if message.old is None:
        return after
    return [image for old, new in zip(message.old, after, strict=True) for image in (new | old, new)]


@lru_cache(1024)
def _rows(
    schema: str, name: str, types: tuple[tuple[str, str], ...], key: tuple[str, ...], time_zone: str
) -> CanalRows:
    columns = [
        Column(name=each, type="", raw_type=kind, values=labels(kind) if kind.startswith(("enum(", "set(")) else ())
        for each, kind in types
    ]
    return CanalRows(table_of(schema, name, columns, key), time_zone)


def _text(column: Column) -> _Text:
    """Return the function that turns canal's string into the exact text (docs/reference/values.md)."""
    kind = sized_type(column)[0]
    if kind in ("float", "double"):
        return lambda cell: float_text(float(cell), single=kind == "float")
    return partial(str.encode, encoding="latin-1") if is_bytes(column) else str.encode


def _value(column: Column, text: _Text, time_zone: str) -> Callable[[str], Any]:
    if sized_type(column)[0] == "timestamp" and time_zone != "UTC":
        return partial(_moment, ZoneInfo(time_zone))
    convert = converter(column)
    return lambda cell: convert(text(cell))


def _moment(zone: ZoneInfo, cell: str) -> datetime | str:
    """Return the moment of a local time; its text if there are two, because a clock was set back, or if it is zero."""
    try:
        local = datetime.fromisoformat(cell).replace(tzinfo=zone)
    except ValueError:
        return cell
    is_unique = local.utcoffset() == local.replace(fold=1).utcoffset()
    return local.astimezone(UTC) if is_unique else cell
