"""What Maxwell tells of tables: their definitions, in the messages about DDL."""

from typing import Any

from databus.events import Action, Column, Table
from databus_messages.formats import columns
from databus_messages.formats.base import DdlStatement

#: TRUNCATE is none to Maxwell
_TYPES = {Action.CREATE: "table-create", Action.ALTER: "table-alter", Action.DROP: "table-drop"}
_WITH_DIGITS = columns.TEMPORAL - {"date"}
_STRINGS = columns.TEXT | columns.BINARY


def description(statement: DdlStatement) -> dict[str, Any] | None:
    """Describe what a statement does to a table; None for what Maxwell has no message for.

    A table that is renamed is told twice: by its old name, as it was, and by its new one, without `old`. That is left
    out, too, where the definition before the statement is not known.
    """
    if statement.action not in _TYPES:
        return None
    table = statement.table
    told: dict[str, Any] = {"type": _TYPES[statement.action], "database": table.schema, "table": table.name}
    if statement.action is Action.ALTER and statement.before:
        told["old"] = _definition(statement.before)
    if statement.action is not Action.DROP:
        told["def"] = _definition(table)
    told["ts"] = statement.begin.time_us // 1000
    told["sql"] = statement.sql
    return told


def _definition(table: Table) -> dict[str, Any]:
    return {
        "database": table.schema,
        "charset": table.charset or None,
        "table": table.name,
        "columns": [_column(column) for column in table.columns],
        "primary-key": [table.columns[place].name for place in table.primary_key],
    }


def _column(column: Column) -> dict[str, Any]:
    told: dict[str, Any] = {
        "type": "geometrycollection" if column.type == "geomcollection" else column.type,
        "name": column.name,
    }
    if column.type in columns.INTEGERS:
        told["signed"] = not column.unsigned
    elif column.type in _STRINGS:
        told["charset"] = "binary" if column.type in columns.BINARY else column.charset or None
    elif column.values:
        told["enum-values"] = column.values
    elif column.type in _WITH_DIGITS:
        told["column-length"] = columns.fraction_digits(column)
    return told
