"""How rows are printed for people: a block for each row, with a line for each column."""

from collections.abc import Callable, Sequence

from databus_binlog import ABSENT, Value
from databus_core.events import Column, Table
from databus_messages.formats.columns import enum_label, set_labels
from databus_messages.formats.sql_literals import literal_encoder

BOLD, DIM, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"
_COLOURS = {"insert": _GREEN, "update": _YELLOW, "delete": _RED}
#: characters after which a value or a statement is cut
LONGEST = 500

_Printer = Callable[[bytes], str]


class RowPrinter:
    """Prints the rows of tables. Columns that an update has changed are marked with `~`."""

    def __init__(self, *, coloured: bool) -> None:
        self._coloured = coloured
        #: a table's fingerprint → name and printer of each column
        self._columns: dict[str, list[tuple[str, _Printer]]] = {}

    def lines(
        self, action: str, table: Table, image: Sequence[Value], after: Sequence[Value] | None = None
    ) -> list[str]:
        """Return the lines of a row; of an update, `image` is the row before. ABSENT columns are left out."""
        if (columns := self._columns.get(table.fingerprint)) is None:
            columns = self._columns[table.fingerprint] = [(each.name, _printer(each)) for each in table.columns]
        cells = zip(columns, image, after or [ABSENT] * len(image), strict=True)
        found = [self._cell(name, printer, value, new) for (name, printer), value, new in cells]
        return [self.paint(_COLOURS[action], f"  {action.upper()} {table.full_name}"), *filter(None, found)]

    def paint(self, colour: str, text: str) -> str:
        """Return a text that a terminal shows in this colour."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self._coloured else text

    def _cell(self, name: str, printer: _Printer, value: Value, after: Value) -> str:
        """Return the line of a column; empty if the row does not contain it. `after`: ABSENT if it did not change."""
        if value is ABSENT and after is ABSENT:
            return ""
        if after is ABSENT or after == value:
            return f"      {name} = {_shown(printer, value)}"
        before = "?" if value is ABSENT else _shown(printer, value)
        return self.paint(_YELLOW, f"    ~ {name} = {before} → {_shown(printer, after)}")


def cut(text: str) -> str:
    """Return the beginning of a long text, with its length."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def _printer(column: Column) -> _Printer:
    if column.type == "enum":
        return lambda value: _quoted(enum_label(column, value)) if column.values else value.decode()
    if column.type == "set":
        return lambda value: _quoted(",".join(set_labels(column, value))) if column.values else value.decode()
    return literal_encoder(column, "mysql")


def _shown(printer: _Printer, value: Value) -> str:
    if not isinstance(value, bytes):
        return "NULL"
    try:
        return cut(printer(value))
    except (LookupError, ValueError):  # no such label, or not UTF-8
        return cut(f"x'{value.hex()}'")


def _quoted(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"
