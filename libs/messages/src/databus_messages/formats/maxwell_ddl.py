"""Maxwell's messages about DDL, with the table's definition."""

from collections.abc import Iterator
from typing import Any

from databus_core.events import Action, Column, Table
from databus_messages.formats import columns
from databus_messages.formats.base import DdlStatement

#: action → type of message; Maxwell has no message for TRUNCATE
_TYPES = {Action.CREATE: "table-create", Action.ALTER: "table-alter", Action.DROP: "table-drop"}
_WITH_FRACTION = columns.TEMPORAL - {"date"}
_STRINGS = columns.TEXT | columns.BINARY


def ddl_messages(statement: DdlStatement) -> Iterator[dict[str, Any]]:
    """Yield a statement's messages; none for a TRUNCATE.

    CREATE OR REPLACE DATABASE has two: `database-drop` and `database-create`.
    A rename has two messages: one for the old name, in which `old` and `def` are the same, and one for the new name,
    without `old`. `old` is also left out if the definition before the statement is not known.
    """
    if statement.is_on_database:
        yield from _database_messages(statement)
    elif statement.action in _TYPES:
        yield _table_message(statement)


def _database_messages(statement: DdlStatement) -> Iterator[dict[str, Any]]:
    database, end = statement.table, {"ts": statement.begin.time_us // 1000, "sql": statement.sql}
    if statement.action is Action.DROP or statement.dropped:
        yield {"type": "database-drop", "database": database.schema} | end
    if statement.action is not Action.DROP:
        yield {
            "type": f"database-{statement.action}", "database": database.schema, "charset": database.charset or None
        } | end  # fmt: skip


def _table_message(statement: DdlStatement) -> dict[str, Any]:
    table = statement.table
    message: dict[str, Any] = {"type": _TYPES[statement.action], "database": table.schema, "table": table.name}
    if statement.action is Action.ALTER and statement.before:
        message["old"] = _definition(statement.before)
    if statement.action is not Action.DROP:
        message["def"] = _definition(table)
    message["ts"] = statement.begin.time_us // 1000
    message["sql"] = statement.sql
    return message


def _definition(table: Table) -> dict[str, Any]:
    return {
        "database": table.schema,
        "charset": table.charset or None,
        "table": table.name,
        "columns": [_column(column) for column in table.columns],
        "primary-key": [table.columns[index].name for index in table.primary_key],
    }


def _column(column: Column) -> dict[str, Any]:
    definition: dict[str, Any] = {
        "type": "geometrycollection" if column.type == "geomcollection" else column.type,
        "name": column.name,
    }
    if column.type in columns.INTEGERS:
        definition["signed"] = not column.unsigned
    elif column.type in _STRINGS:
        definition["charset"] = "binary" if column.type in columns.BINARY else column.charset or None
    elif column.values:
        definition["enum-values"] = column.values
    elif column.type in _WITH_FRACTION:
        definition["column-length"] = columns.fraction_digits(column)
    return definition
