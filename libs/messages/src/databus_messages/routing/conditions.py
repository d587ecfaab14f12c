"""Which rows a rule lets through: conditions on the exact texts of values (docs/reference/values.md)."""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from databus.errors import InvalidSettings
from databus.events import Column, Row, Table
from databus.rules import Condition, Value
from databus_messages.formats.columns import INTEGERS, type_arguments
from databus_messages.routing.columns import place_of

Passes: TypeAlias = Callable[[Row], bool]

#: no row's text: those of ENUM and SET are numbers
_NO_LABEL = b"-"


def conditions(where: Sequence[Condition], table: Table) -> Passes:
    """Make the test of a table's rows; all conditions have to be met. Raises InvalidSettings."""
    tests = [_test(condition, table) for condition in where]
    return lambda row: all(test(row) for test in tests)


def _test(condition: Condition, table: Table) -> Passes:
    place = place_of(table, condition.column)
    if condition.is_null is not None:
        return lambda row: (row[place] is None) is condition.is_null
    values = (condition.equals, *condition.in_, *condition.not_in)
    wanted = {_text(table.columns[place], value) for value in values if value is not None}
    if condition.not_in:
        return lambda row: row[place] not in wanted
    return lambda row: row[place] in wanted


def _text(column: Column, value: Value) -> bytes:
    """Give the text that stands for a value. A label that an ENUM or SET does not have (yet) is no row's."""
    try:
        if column.type in INTEGERS or column.type in {"year", "bit"}:
            return b"%d" % int(value)
        if column.type == "decimal":
            return _decimal(column, value)
    except (ValueError, InvalidOperation):
        raise InvalidSettings(f"{value!r} is no value of column {column.name}, {column.raw_type}") from None
    text, labels = str(value), column.values
    if column.type == "enum":
        return b"%d" % (labels.index(text) + 1) if text in labels else _NO_LABEL
    if column.type == "set":
        chosen = set(text.split(",")) if text else set()
        return b"%d" % sum(1 << labels.index(label) for label in chosen) if chosen <= {*labels} else _NO_LABEL
    return text.encode()


def _decimal(column: Column, value: Value) -> bytes:
    """Write a number with all digits of the column's scale."""
    scale = (*type_arguments(column), 0, 0)[1]
    number = Decimal(value)
    exact = number.quantize(Decimal(1).scaleb(-scale))
    if exact != number:
        raise ValueError
    return f"{exact:f}".encode()
