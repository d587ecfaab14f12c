"""Schema change messages: the schemas of their topic, and the description of the table after a statement."""

import re
from typing import Any

from databus_binlog import Flavor
from databus_core.events import Action, Column, Table
from databus_messages.formats.base import DdlStatement
from databus_messages.formats.columns import BINARY, TEXT, quoted, type_arguments
from databus_messages.formats.debezium.options import DebeziumOptions
from databus_messages.formats.debezium.schemas import BOOLEAN, INT32, INT64, STRING, Schema, array, struct
from databus_messages.formats.debezium.types import declared_type

_COLUMN = struct(
    "io.debezium.connector.schema.Column",
    {
        "name": STRING,
        "jdbcType": INT32,
        "nativeType": INT32.nullable(),
        "typeName": STRING,
        "typeExpression": STRING.nullable(),
        "charsetName": STRING.nullable(),
        "length": INT32.nullable(),
        "scale": INT32.nullable(),
        "position": INT32,
        "optional": BOOLEAN.nullable(),
        "autoIncremented": BOOLEAN.nullable(),
        "generated": BOOLEAN.nullable(),
        "comment": STRING.nullable(),
        "defaultValueExpression": STRING.nullable(),
        "enumValues": array(STRING).nullable(),
    },
)
_TABLE = struct(
    "io.debezium.connector.schema.Table",
    {
        "defaultCharsetName": STRING.nullable(),
        "primaryKeyColumnNames": array(STRING).nullable(),
        "columns": array(_COLUMN),
        "comment": STRING.nullable(),
    },
).nullable()
_CHANGE = struct("io.debezium.connector.schema.Change", {"type": STRING, "id": STRING, "table": _TABLE})

#: column type → value of java.sql.Types, as the connectors' parsers report it: TINYINT is a SMALLINT, TEXT a VARCHAR,
#: YEAR an INTEGER; every type that is not listed is OTHER
_JDBC = {
    "tinyint": 5, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 6, "double": 8, "decimal": 3,
    "bit": -7, "year": 4, "date": 91, "time": 92, "datetime": 93, "timestamp": 2014, "char": 1, "enum": 1, "set": 1,
    **dict.fromkeys(TEXT - {"char"}, 12), **dict.fromkeys(BINARY, 2004), "binary": -2, "varbinary": -3,
}  # fmt: skip
_OTHER = 1111
_DECLARED = {"BOOL": 16, "BOOLEAN": 16, "JSON": _OTHER}
#: type and whether it is unsigned → default display width
_WIDTHS = {
    ("tinyint", False): 4, ("smallint", False): 6, ("mediumint", False): 9, ("int", False): 11, ("bigint", False): 20,
    ("tinyint", True): 3, ("smallint", True): 5, ("mediumint", True): 8, ("int", True): 10, ("bigint", True): 20,
    ("year", False): 4,
}  # fmt: skip
_CHANGE_TYPES = {Action.CREATE: "CREATE", Action.ALTER: "ALTER", Action.DROP: "DROP"}


def key_schema(flavor: Flavor) -> Schema:
    """Return the schema of keys."""
    return struct(f"io.debezium.connector.{flavor}.SchemaChangeKey", {"databaseName": STRING})


def value_schema(flavor: Flavor, source: Schema) -> Schema:
    """Return the schema of values; `source` is the schema of their `source`."""
    fields = {
        "source": source,
        "ts_ms": INT64,
        "databaseName": STRING.nullable(),
        "schemaName": STRING.nullable(),
        "ddl": STRING.nullable(),
        "tableChanges": array(_CHANGE),
    }
    return struct(f"io.debezium.connector.{flavor}.SchemaChangeValue", fields)


def table_changes(statement: DdlStatement, options: DebeziumOptions) -> list[dict[str, Any]]:
    """Return `tableChanges`, which is empty for a TRUNCATE: it changes no schema."""
    if statement.is_on_database:
        return [_change("DROP", table, options) for table in statement.dropped]
    kind = _CHANGE_TYPES.get(statement.action)
    return [_change(kind, statement.table, options)] if kind else []


def _change(kind: str, table: Table, options: DebeziumOptions) -> dict[str, Any]:
    name = f'"{table.schema}"."{table.name}"'
    return {"type": kind, "id": name, "table": None if kind == "DROP" else _table(table, options)}


def _table(table: Table, options: DebeziumOptions) -> dict[str, Any]:
    return {
        "defaultCharsetName": table.charset or None,
        "primaryKeyColumnNames": [table.columns[index].name for index in table.row_key],
        "columns": [_column(position, column, options) for position, column in enumerate(table.columns, 1)],
        "comment": None,
    }


def _column(position: int, column: Column, options: DebeziumOptions) -> dict[str, Any]:
    declared = declared_type(column, options)
    stored = column.type.upper() if column.values else re.sub(r"\(.*?\)", "", column.raw_type).upper()
    name = declared or stored
    length, scale = (None, None) if declared else _size(column)
    return {
        "name": column.name,
        "jdbcType": _DECLARED[declared] if declared else _JDBC.get(column.type, _OTHER),
        "nativeType": None,
        "typeName": name,
        "typeExpression": name,
        "charsetName": None if declared else column.charset or None,
        "length": length,
        "scale": scale,
        "position": position,
        "optional": column.nullable,
        "autoIncremented": column.auto_increment,
        # the connectors report AUTO_INCREMENT columns as generated
        "generated": column.generated or column.auto_increment,
        "comment": None,
        "defaultValueExpression": None,
        "enumValues": [quoted(label) for label in column.values] or None,
    }


def _size(column: Column) -> tuple[int | None, int | None]:
    if column.type == "enum":
        return 1, None
    if column.type == "set":
        return max(0, 2 * len(column.values) - 1), None
    length, scale, *_ = (*type_arguments(column), None, None)
    # The server shows default widths, although no statement gave them.
    is_default = length == _WIDTHS.get((column.type, column.unsigned))
    return None if is_default else length, scale
