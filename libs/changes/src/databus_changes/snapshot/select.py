"""The SELECT that reads a table's rows in canonical value text: the same text that the binlog decoder produces.

The session is one of `connect_snapshot`, with `time_zone='+00:00'`, `sql_mode=''` and utf8mb4, so most columns can be
selected as they are.
"""

from dataclasses import dataclass

from databus_binlog.row_batch import Conversion
from databus_core.events import Column, Table

#: MariaDB types that are BINARY(n) in the binlog → n
_PACKED = {"uuid": 16, "inet6": 16, "inet4": 4}


@dataclass(frozen=True)
class Select:
    """A table's query."""

    sql: str
    #: how each cell that the server sends becomes canonical value text
    conversions: tuple[Conversion, ...]


def select(table: Table, condition: str = "") -> Select:
    """Build the query for all columns in table order, of the rows that meet an SQL condition, or of all.

    The rows are in primary-key order, if there is such a key.
    """
    # Without FORCE INDEX the server may scan the table and sort it on disk before it sends the first row.
    order = ", ".join(quoted(table.columns[index].name) for index in table.primary_key)
    index, ordered = (" FORCE INDEX (PRIMARY)", f" ORDER BY {order}") if order else ("", "")
    where = f" WHERE {condition}" if condition else ""
    source = f"{quoted_name(table)}{index}{where}"
    sql = f"SELECT {select_list(table)} FROM {source}{ordered}"  # noqa: S608 - names are quoted
    return Select(sql, conversions(table))


def select_list(table: Table) -> str:
    """Build the expressions that select all columns in table order."""
    return ", ".join(map(_expression, table.columns))


def conversions(table: Table) -> tuple[Conversion, ...]:
    """Return what SQL cannot do with the values of `select_list`: one conversion for each column."""
    return tuple(map(_conversion, table.columns))


def quoted_name(table: Table) -> str:
    """Return the table's name, quoted, with its schema."""
    return f"{quoted(table.schema)}.{quoted(table.name)}"


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


def _conversion(column: Column) -> Conversion:
    if column.type == "float":
        return Conversion.FLOAT
    if column.type == "double":
        return Conversion.DOUBLE
    if column.raw_type.lower().startswith("year(2)"):
        return Conversion.YEAR2
    return Conversion.NONE
