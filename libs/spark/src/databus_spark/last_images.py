"""The last row image of each primary key: what a mirror's rows become."""

import re
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from databus_core.definitions import key_columns
from databus_core.events import Table
from databus_spark.mirror_columns import SEQUENCE, mirror_columns
from databus_spark.table import LakeTable, Ranges
from databus_spark.types import Columns, TypeOptions, identifier, may_become_null, typed_cells

#: whether the row of an image does not exist after it
REMOVED = "s._action in ('update_before', 'delete')"
#: orders of entries: within a partition, where only replayed dead letters are not in the order of their sequences; and
#: of the last ones of several partitions, by transaction
_IN_PARTITION = "struct(_seq, _offset, _row)"
_AMONG_PARTITIONS = "struct(substring(_seq, 1, 16), _action in ('insert', 'update_after'))"
#: type → SQL literal of a value's text. Files are not skipped by a cast; and a time that is an instant has no text that
#: is the same in all time zones.
_LITERALS: dict[str, Callable[[str], str]] = {
    "bigint": "{}L".format,
    "decimal": "{}BD".format,
    "string": "'{}'".format,
    "date": "DATE'{}'".format,
    "timestamp_ntz": "TIMESTAMP_NTZ'{}'".format,
}
#: in text that a literal may not have exactly: escapes depend on the session's settings, and invalid UTF-8 was replaced
_UNSAFE = re.compile(r"[\\'$\ufffd]")
#: begins the text of an error that a query raises for a key that the lake cannot represent
NO_KEY = "databus: no key"


def last_of_each_key(entries: DataFrame, table: Table, partitions: int, types: TypeOptions) -> DataFrame:
    """Return the last row image of each primary key, typed, with the columns `_seq` and `_action`.

    A partition has the changes of a key in their order. A row that moves from one partition to another one, because
    columns of `routes.key` change, is deleted in one and inserted in the other one, in either order. So if several
    partitions have a key in its last transaction, it exists if it exists after the changes of any of them.
    """
    into = row_columns(table, types)
    keys, cells = key_columns(table), typed_cells(table, into, types)
    typed = entries.selectExpr("_seq", "_action", "_topic", "_partition", "_offset", "_row", *cells)
    typed = with_keys(typed, table, types)
    return last_of_keys(typed, keys, list(into), in_one_partition=partitions == 1)


def last_of_keys(
    images: DataFrame, keys: Sequence[str], columns: Sequence[str], *, in_one_partition: bool = False
) -> DataFrame:
    """Return the last one of typed row images for each primary key, as `last_of_each_key` does."""
    kept = [name for name in (*columns, "_seq", "_action") if name not in keys]

    def last(rows: DataFrame, by: Sequence[str], order: str) -> DataFrame:
        struct = f"struct({', '.join(identifier(name) for name in kept)})"
        return rows.groupBy(*map(identifier, by)).agg(sql.expr(f"max_by({struct}, {order})").alias("_last"))

    selected = [*map(identifier, keys), "_last.*"]
    if in_one_partition:
        return last(images, keys, _IN_PARTITION).selectExpr(*selected)
    in_partitions = last(images, [*keys, "_topic", "_partition"], _IN_PARTITION).selectExpr(*selected)
    return last(in_partitions, keys, _AMONG_PARTITIONS).selectExpr(*selected)


def merge_latest(table: LakeTable, latest: DataFrame, keys: Sequence[str], text: str, newer: str) -> None:
    """Merge the last images of keys into a table, with a commit that has a text. `newer`: see `LakeTable.merge`."""
    kept = latest.persist()
    try:
        table.merge(kept, keys, REMOVED, text, newer, _ranges(kept, keys))
    finally:
        kept.unpersist()


def _ranges(latest: DataFrame, keys: Sequence[str]) -> Ranges:
    """Return the ranges of those columns of the key whose order the statistics of files have, too."""
    literals = {name: _LITERALS.get(kind.partition("(")[0]) for name, kind in latest.dtypes if name in keys}
    ordered = {name: as_literal for name, as_literal in literals.items() if as_literal}
    ends = [f"cast({function}({identifier(name)}) as string)" for name in ordered for function in ("min", "max")]
    found = list(latest.selectExpr(*ends).collect()[0]) if ends else []
    ranges = zip(ordered.items(), found[::2], found[1::2], strict=True)
    return {
        name: (as_literal(low), as_literal(high))
        for (name, as_literal), low, high in ranges
        if low is not None and not _UNSAFE.search(low + high)
    }


def row_columns(table: Table, types: TypeOptions) -> Columns:
    """Return the columns of a table that a mirror has of it, with their types."""
    return {name: kind for name, kind in mirror_columns(table, types).items() if name != SEQUENCE}


def with_keys(typed: DataFrame, table: Table, types: TypeOptions) -> DataFrame:
    """Let a query fail at a row whose key is NULL in the lake: rows with different keys would become one."""
    for index in table.primary_key:
        column = table.columns[index]
        if may_become_null(column, types):
            name = identifier(column.name)
            typed = typed.withColumn(column.name, sql.expr(f"if({name} is null, raise_error('{NO_KEY}'), {name})"))
    return typed
