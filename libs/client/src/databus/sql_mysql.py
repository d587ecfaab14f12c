"""Replicas in MySQL and MariaDB: the types of columns, and how rows are written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Column, Connection, Engine, Table, and_, case, null
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import UserDefinedType

from databus.sql_types import reader
from databus.values import converter
from databus_binlog.description import SHOW_VARIABLES, described
from databus_core import events
from databus_core.definitions import sized_type

#: TIMESTAMPs are written in UTC. Values are refused, not changed to fit, and dates such as 0000-00-00 are values.
#: ANSI_QUOTES stays as it is, because SQLAlchemy has read it to know how names are quoted.
_SESSION = """
    SET time_zone = '+00:00', sql_mode = CONCAT(
        IF(FIND_IN_SET('ANSI_QUOTES', @@sql_mode), 'ANSI_QUOTES,', ''),
        'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'
    )
"""
#: errors by which a value is refused: out of range, truncated, wrong for its type, too long
_VALUE_ERRORS = {1264, 1265, 1292, 1366, 1367, 1406}
#: errors by which a table is refused: columns, row or key are too large, or a TEXT or BLOB is in the key
_TABLE_ERRORS = {1071, 1074, 1117, 1118, 1170, 1425, 1426}
#: bytes that all VARCHARs of a row may have: a row has at most 65535, of which the other columns need some
_TEXT_BYTES = 40_000

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
#: types whose text goes to a column of the same type
_SAME = ("decimal", "float", "double", "date", "datetime", "timestamp", "time", "json")
#: type → characters of its text
_TEXT_SIZES = {"uuid": 36, "inet4": 15, "inet6": 45}


class MySql:
    """MySQL and MariaDB."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def columns(self, source: events.Table) -> list[Column[Any]]:
        """Return the columns for a table of the source."""
        is_wide = sum(4 * _characters(column) for column in source.columns) > _TEXT_BYTES
        return [
            Column(
                column.name,
                _Type(_key_type(column) if index in source.primary_key else _type(column, is_wide=is_wide)),
                primary_key=index in source.primary_key,
                autoincrement=False,
            )
            for index, column in enumerate(source.columns)
        ]

    def options(self) -> dict[str, Any]:
        """Return the options of a table: keys that differ in case, accents or trailing spaces are different."""
        exact = "utf8mb4_nopad_bin" if getattr(self._dialect, "is_mariadb", False) else "utf8mb4_0900_bin"
        options = {"engine": "InnoDB", "row_format": "DYNAMIC", "default_charset": "utf8mb4", "collate": exact}
        return {f"{self._dialect.name}_{name}": value for name, value in options.items()}

    def reader(self, column: events.Column) -> Callable[[bytes], Any]:
        """Return the function that turns a text of the source into what the column gets."""
        kind = sized_type(column)[0]
        if kind in _SAME:
            return bytes.decode
        if kind == "uuid":
            convert = converter(column)
            return lambda text: str(convert(text))
        return reader(column)

    def upsert(self, table: Table) -> Any:
        """Build the INSERT that replaces rows with the same primary key.

        A row with another key is in its way if the table has a unique index. MySQL would replace that row, too; here
        its key would become NULL, which is an error.
        """
        into = mysql.insert(table)
        keys = list(table.primary_key)
        is_same = and_(*(key == into.inserted[key.name] for key in keys))
        values = {column.name: into.inserted[column.name] for column in table.columns}
        return into.on_duplicate_key_update(
            values | {key.name: key for key in keys} | {keys[0].name: case((is_same, keys[0]), else_=null())}
        )

    @contextmanager
    def begin(self, engine: Engine) -> Iterator[Connection]:
        """Begin a transaction that stores values as they are, or not at all."""
        with engine.begin() as connection:
            connection.exec_driver_sql(_SESSION)
            yield connection

    def refusal(self, error: DBAPIError) -> str | None:
        """Return why the database refuses a value or a table."""
        code, *texts = error.orig.args if error.orig and error.orig.args else (0,)
        if code in _TABLE_ERRORS:
            return str(texts[0])
        return f"MySQL error {code}" if code in _VALUE_ERRORS else None  # its text may quote the value

    def server(self, connection: Connection) -> str:
        """Return the identity of the server."""
        return described(tuple(row) for row in connection.exec_driver_sql(SHOW_VARIABLES)).identity


class _Type(UserDefinedType[Any]):
    """A type as it is written in CREATE TABLE. Texts are converted by the server."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **_: Any) -> str:
        """Return the type as it is written."""
        return self.text


def _characters(column: events.Column) -> int:
    """Return how many characters a VARCHAR for a column needs; 0 if it is not kept in a VARCHAR."""
    kind, size, _ = sized_type(column)
    labels = [len(label) for label in column.values]
    match kind:
        case "char" | "varchar":
            return size or 1
        case "enum":
            return max(labels)
        case "set":
            return sum(labels) + len(labels)
    return _TEXT_SIZES.get(kind, 0)


def _key_type(column: events.Column) -> str:
    kind, size, _ = sized_type(column)
    if kind in ("binary", "varbinary"):
        return f"VARBINARY({size or 1})"
    text = _type(column, is_wide=False)
    if kind == "timestamp":  # without a default, old servers set it in each UPDATE
        return text.replace("NULL", "DEFAULT '2000-01-01'")
    return text


def _type(column: events.Column, *, is_wide: bool) -> str:
    kind, size, scale = sized_type(column)
    if characters := _characters(column):
        return "LONGTEXT" if is_wide else f"VARCHAR({characters})"
    sign = " UNSIGNED" * ("unsigned" in column.raw_type.lower())
    types = {
        **{integer: integer.upper() + sign for integer in _INTEGERS},
        **{same: same.upper() for same in ("year", "float", "double", "date")},
        **dict.fromkeys(("json", "tinytext", "text", "mediumtext", "longtext"), "LONGTEXT"),
        "datetime": f"DATETIME({size})",
        "timestamp": f"TIMESTAMP({size}) NULL",
        "time": f"TIME({size})",
        "decimal": f"DECIMAL({size or 10},{scale})",
        "bit": f"BIT({size or 1})",
    }
    return types.get(kind, "LONGBLOB")
