"""The SELECT that gives a table's rows in canonical value text, equal to what the binlog's decoder gives.

The session is `time_zone='+00:00'`, `sql_mode=''` and utf8mb4, so most columns can be selected as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from databus.events import Column, Row, Table
from databus_binlog import float_text

#: MariaDB's types that the binlog cannot tell from BINARY(n)
_PACKED = {"uuid": 16, "inet6": 16, "inet4": 4}


@dataclass(frozen=True)
class Select:
    """A table's query, and what is left to do with its cells."""

    sql: str
    #: place of a column → its text from the server's text
    _rewrites: tuple[tuple[int, Callable[[bytes], bytes]], ...]

    def row(self, cells: Sequence[bytes | None]) -> Row:
        """Make a row of the cells the server sent."""
        row = list(cells)
        for place, rewrite in self._rewrites:
            cell = row[place]
            if cell is not None:
                row[place] = rewrite(cell)
        return row


def select(table: Table) -> Select:
    """Read all columns in table order, rows in primary-key order."""
    # Without the hint a server may prefer to scan and sort, on its disk, before it sends the first row.
    order = ", ".join(quoted(table.columns[place].name) for place in table.primary_key)
    ordered = f" FORCE INDEX (PRIMARY) ORDER BY {order}" if order else ""
    columns = ", ".join(_expression(column) for column in table.columns)
    sql = f"SELECT {columns} FROM {quoted(table.schema)}.{quoted(table.name)}{ordered}"  # noqa: S608 - all is quoted
    rewrites = ((place, _rewrite(column)) for place, column in enumerate(table.columns))
    return Select(sql, tuple((place, rewrite) for place, rewrite in rewrites if rewrite))


def quoted(identifier: str) -> str:
    """Quote an identifier."""
    return "`" + identifier.replace("`", "``") + "`"


def _expression(column: Column) -> str:
    """Select one column."""
    name = quoted(column.name)
    if column.type in {"enum", "set", "bit"}:
        return f"CAST({name} AS UNSIGNED)"  # `+ 0` makes a SET's 64th bit a sign
    if column.type in {"float", "double"}:
        return f"CAST({name} AS DOUBLE)"  # a FLOAT's own text is rounded, FLOAT(m,d) and DOUBLE(m,d) are padded
    if column.type in _PACKED:
        return f"CAST({name} AS BINARY({_PACKED[column.type]}))"
    if "zerofill" in column.raw_type.lower() and column.type != "year":
        return f"{name} + 0"
    return name


def _rewrite(column: Column) -> Callable[[bytes], bytes] | None:
    """Change what no expression can: floats get the decoder's notation, MariaDB's YEAR(2) its century."""
    if column.type == "float":
        return lambda text: float_text(float(text), single=True)
    if column.type == "double":
        return lambda text: float_text(float(text))
    if column.raw_type.lower().startswith("year(2)"):
        return lambda text: b"%d" % (int(text) + (2000 if int(text) < 70 else 1900))
    return None
