"""The SELECT that reads a table's rows in canonical value text: the same text that the binlog decoder produces.

The session has `time_zone='+00:00'`, `sql_mode=''` and utf8mb4, so most columns can be selected as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from databus.events import Column, Row, Table
from databus_binlog import float_text

#: MariaDB types that are BINARY(n) in the binlog → n
_PACKED = {"uuid": 16, "inet6": 16, "inet4": 4}


@dataclass(frozen=True)
class Select:
    """A table's query, and the conversions that its cells still need."""

    sql: str
    #: (index of a column, conversion of the server's text to the canonical text)
    _conversions: tuple[tuple[int, Callable[[bytes], bytes]], ...]

    def row(self, cells: Sequence[bytes | None]) -> Row:
        """Convert the cells that the server sent."""
        row = list(cells)
        for index, convert in self._conversions:
            cell = row[index]
            if cell is not None:
                row[index] = convert(cell)
        return row


def select(table: Table) -> Select:
    """Build the query for all columns in table order. The rows are in primary-key order, if there is such a key."""
    # Without FORCE INDEX the server may scan the table and sort it on disk before it sends the first row.
    order = ", ".join(quoted(table.columns[index].name) for index in table.primary_key)
    ordered = f" FORCE INDEX (PRIMARY) ORDER BY {order}" if order else ""
    columns = ", ".join(_expression(column) for column in table.columns)
    sql = f"SELECT {columns} FROM {quoted(table.schema)}.{quoted(table.name)}{ordered}"  # noqa: S608 - names are quoted
    conversions = ((index, _conversion(column)) for index, column in enumerate(table.columns))
    return Select(sql, tuple((index, convert) for index, convert in conversions if convert))


def quoted(identifier: str) -> str:
    """Quote an identifier."""
    return "`" + identifier.replace("`", "``") + "`"


def _expression(column: Column) -> str:
    """Build the expression that selects one column."""
    name = quoted(column.name)
    if column.type in {"enum", "set", "bit"}:
        return f"CAST({name} AS UNSIGNED)"  # `+ 0` would read a SET's 64th bit as a sign
    if column.type in {"float", "double"}:
        return f"CAST({name} AS DOUBLE)"  # the text of FLOAT is rounded, and that of FLOAT(m,d) and DOUBLE(m,d) padded
    if column.type in _PACKED:
        return f"CAST({name} AS BINARY({_PACKED[column.type]}))"
    if "zerofill" in column.raw_type.lower() and column.type != "year":
        return f"{name} + 0"  # without the padding
    return name


def _conversion(column: Column) -> Callable[[bytes], bytes] | None:
    """Return the conversion that SQL cannot do: floats to the decoder's notation; MariaDB's YEAR(2) to four digits."""
    if column.type == "float":
        return lambda text: float_text(float(text), single=True)
    if column.type == "double":
        return lambda text: float_text(float(text))
    if column.raw_type.lower().startswith("year(2)"):
        return lambda text: b"%d" % (int(text) + (2000 if int(text) < 70 else 1900))
    return None
