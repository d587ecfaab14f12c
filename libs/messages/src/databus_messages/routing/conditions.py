"""Selects the rows that a rule publishes, by conditions on the canonical text of values (docs/reference/values.md)."""

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import TypeAlias

from databus_core.errors import InvalidSettings, PoisonError
from databus_core.events import Column, Row, Table, is_absent
from databus_core.settings.rules import Condition, Value
from databus_messages.formats.columns import INTEGERS, type_arguments
from databus_messages.routing.columns import column_index

#: whether a row meets the conditions
RowTest: TypeAlias = Callable[[Row], bool]

#: stands for a label that the column does not have; equals no value, because the text of ENUM and SET is digits
_UNKNOWN_LABEL = b"-"
#: most digits of a DECIMAL
_DECIMAL_DIGITS = 65


def conditions(where: Sequence[Condition], table: Table) -> RowTest:
    """Return a test for rows that meet all conditions. Raises InvalidSettings if a condition does not fit the table.

    The test raises PoisonError if it depends on a value that is ABSENT.
    """
    # Values that may be ABSENT are tested last: other conditions may exclude the row.
    tests = [_test(each, table) for each in sorted(where, key=lambda each: _may_be_absent(each, table))]
    return lambda row: all(test(row) for test in tests)


def _may_be_absent(condition: Condition, table: Table) -> bool:
    return table.columns[column_index(table, condition.column)].type.endswith(("text", "blob"))


def _test(condition: Condition, table: Table) -> RowTest:
    test = _test_of_value(condition, table)
    if not _may_be_absent(condition, table):
        return test
    index = column_index(table, condition.column)

    def unless_absent(row: Row) -> bool:
        if is_absent(row[index]):
            raise PoisonError(f"the binlog lacks the value of {condition.column}, on which a rule has a condition")
        return test(row)

    return unless_absent


def _test_of_value(condition: Condition, table: Table) -> RowTest:
    index = column_index(table, condition.column)
    if condition.is_null is not None:
        return lambda row: (row[index] is None) is condition.is_null
    values = (condition.equals, *condition.in_, *condition.not_in)
    texts = {_text(table.columns[index], value) for value in values if value is not None}
    if condition.not_in:
        return lambda row: row[index] not in texts
    return lambda row: row[index] in texts


def _text(column: Column, value: Value) -> bytes:
    """Return the canonical text of a rule's value; `_UNKNOWN_LABEL` for a label that an ENUM or SET does not have."""
    try:
        if column.type in INTEGERS or column.type == "bit":
            return b"%d" % int(value)
        if column.type == "year":
            return b"%04d" % int(value)
        if column.type == "decimal":
            return _decimal(column, value)
    except (ValueError, InvalidOperation):
        raise InvalidSettings(f"{value!r} is not a value of column {column.name}, which is {column.raw_type}") from None
    text, labels = str(value), column.values
    if column.type == "enum":
        return b"%d" % (labels.index(text) + 1) if text in labels else _UNKNOWN_LABEL
    if column.type == "set":
        chosen = set(text.split(",")) if text else set()
        return b"%d" % sum(1 << labels.index(label) for label in chosen) if chosen <= {*labels} else _UNKNOWN_LABEL
    return text.encode()


def _decimal(column: Column, value: Value) -> bytes:
    """Write a number with all decimals of the column's scale.

    Raises ValueError if the number has more decimals, InvalidOperation if it is not a number or has too many digits.
    """
    scale = (*type_arguments(column), 0, 0)[1]
    number = Decimal(value)
    exact = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=_DECIMAL_DIGITS))
    if exact != number:
        raise ValueError
    return f"{exact:f}".encode()
