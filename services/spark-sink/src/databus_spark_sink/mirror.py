"""The mirror of a table's current rows, into which the last change of each primary key is merged.

For the merge, a before image removes its key and an after image writes it, in binlog order. So an update that keeps
its key ends with the new row, and one that changes the key removes the old key and writes the new one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.window import Window

from databus.errors import SchemaMismatch
from databus.events import Action, Table
from databus_spark_sink import lake
from databus_spark_sink.columns import identifier
from databus_spark_sink.decode import DdlRecord, SchemaVersion

_REMOVED = "s._action in ('update_before', 'delete')"


@dataclass(frozen=True)
class Reset:
    """Whether DDL in a batch emptied or created the table."""

    #: Kafka offset of the last statement after which the table was empty; None if there is none
    offset: int | None = None
    #: whether the batch created the table, so that the batch contains the table's first rows
    created: bool = False


def find_reset(ddl: Sequence[DdlRecord], *, absent: bool) -> Reset:
    """Find the last statement that emptied the table: TRUNCATE, or CREATE while the table does not exist.

    `absent` says whether the table did not exist before the batch. After DROP the mirror keeps its rows until the table
    is created again. CREATE TABLE IF NOT EXISTS is logged for an existing table too, and changes nothing then.
    """
    reset = Reset()
    for record in ddl:
        if record.action is Action.DROP:
            absent = True
        elif record.action is Action.TRUNCATE:
            reset = Reset(record.offset, reset.created)
        elif record.action is Action.CREATE and absent:
            reset, absent = Reset(record.offset, created=True), False
    return reset


def has_keys(versions: Sequence[SchemaVersion], since: int | None) -> bool:
    """Return whether the table has a primary key in all its schemas from an offset on."""
    return all(version.table.primary_key for version in versions if since is None or version.last >= since)


@dataclass(frozen=True)
class MergeStep:
    """One merge: the change-log entries at these Kafka offsets, all with the same primary key columns."""

    key: tuple[str, ...]
    offsets: range
    #: whether to remove all rows that the entries do not write
    replace_all: bool


def merge_steps(versions: Sequence[SchemaVersion], reset: int | None) -> list[MergeStep]:
    """Divide a table's entries in a batch into merges, a new one wherever the primary key columns change.

    `reset` is the offset of the last statement that emptied the table; entries before it are left out. Raises
    SchemaMismatch if the table cannot be mirrored.
    """
    start = -1 if reset is None else reset
    kept = [version for version in versions if version.images and version.last > start]
    found: list[MergeStep] = []
    for key, group in groupby(kept, lambda version: _key(version.table)):
        same = list(group)
        if not key:
            raise SchemaMismatch(
                f"table {same[0].table.full_name} no longer has a primary key: leave it out of spark.tables"
            )
        offsets = range(max(same[0].first, start + 1), max(version.last for version in same) + 1)
        if found and found[-1].offsets.stop > offsets.start:
            raise SchemaMismatch(
                f"table {same[0].table.full_name}: the primary key was changed and changed back within a micro-batch: "
                "remove the lake to start from a new dump"
            )
        found.append(MergeStep(key, offsets, replace_all=reset is not None and not found))
    if reset is not None and not found:
        found.append(MergeStep((), range(0), replace_all=True))
    return found


def merge(path: Path, entries: DataFrame, step: MergeStep) -> None:
    """Apply change-log entries to a mirror: one Delta commit."""
    source = _last_of_each_key(entries, step)
    into = lake.read_columns(entries.sparkSession, path)
    on = " AND ".join(f"t.{column} <=> s.{column}" for column in map(identifier, step.key)) or "false"
    values: dict[str, str | Column] = {identifier(column): f"s.{identifier(column)}" for column in into}
    merging = (
        DeltaTable.forPath(entries.sparkSession, str(path))
        .alias("t")
        .merge(source.alias("s"), on)
        .whenMatchedDelete(_REMOVED)
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(f"not ({_REMOVED})", values)
    )
    if step.replace_all:
        merging = merging.whenNotMatchedBySourceDelete()
    merging.execute()


def _last_of_each_key(entries: DataFrame, step: MergeStep) -> DataFrame:
    images = entries.where("_query is null")
    in_step = images.where(sql.col("_offset").between(step.offsets.start, step.offsets.stop - 1))
    by_key = Window.partitionBy(*map(identifier, step.key)).orderBy(sql.desc("_offset"), sql.desc("_row"))
    # The rank reuses the name of a metadata column, because no column of the table can have it.
    return in_step.withColumn("_row", sql.row_number().over(by_key)).where("_row = 1")


def _key(table: Table) -> tuple[str, ...]:
    return tuple(table.columns[index].name for index in table.primary_key)
