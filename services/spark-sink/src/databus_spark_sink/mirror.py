"""The current-state mirror: the last change of each primary key, merged into the table.

In what the merge reads, a before image removes its key and an after image sets it, in log order: an update that keeps
its key sets it last, one that changes it leaves the old key removed.
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
from databus_spark_sink.decode import Statement, Version

_REMOVED = "s._action in ('update_before', 'delete')"


@dataclass(frozen=True)
class Emptied:
    """What DDL in a batch did to a table's rows."""

    #: offset of the last statement that left it empty
    since: int | None = None
    #: it was created, so that its rows are known from the first one on
    born: bool = False


def emptied(statements: Sequence[Statement], *, absent: bool) -> Emptied:
    """Find where a table was emptied: truncated, or created while `absent`.

    A dropped table's rows stay until there is a new one of its name. CREATE TABLE IF NOT EXISTS of a table that exists
    is logged too, and changes nothing.
    """
    found = Emptied()
    for statement in statements:
        if statement.action is Action.DROP:
            absent = True
        elif statement.action is Action.TRUNCATE:
            found = Emptied(statement.offset, found.born)
        elif statement.action is Action.CREATE and absent:
            found, absent = Emptied(statement.offset, born=True), False
    return found


def has_keys(versions: Sequence[Version], since: int | None) -> bool:
    """Say whether all rows after an offset have a primary key."""
    return all(version.table.primary_key for version in versions if since is None or version.last >= since)


@dataclass(frozen=True)
class Step:
    """What one merge takes in: the entries at these offsets, which have one primary key."""

    key: tuple[str, ...]
    offsets: range
    #: the table was empty before
    anew: bool


def steps(versions: Sequence[Version], empty_since: int | None) -> list[Step]:
    """Cut a table's part of a batch where its primary key changes.

    `empty_since` is the offset of the last statement that emptied the table: nothing before it matters. Raises
    SchemaMismatch where the table cannot be mirrored.
    """
    start = -1 if empty_since is None else empty_since
    kept = [version for version in versions if version.images and version.last > start]
    found: list[Step] = []
    for key, group in groupby(kept, lambda version: _key(version.table)):
        same = list(group)
        if not key:
            raise SchemaMismatch(f"{_name(same[0].table)} has lost its primary key: leave it out of spark.tables")
        offsets = range(max(same[0].first, start + 1), max(version.last for version in same) + 1)
        if found and found[-1].offsets.stop > offsets.start:
            raise SchemaMismatch(f"{_name(same[0].table)}: its primary key changed to and fro within a micro-batch")
        found.append(Step(key, offsets, anew=empty_since is not None and not found))
    if empty_since is not None and not found:
        found.append(Step((), range(0), anew=True))
    return found


def merge(path: Path, entries: DataFrame, step: Step) -> None:
    """Apply change-log entries to a mirror: one Delta commit."""
    source = _last_of_each_key(entries, step)
    into = lake.columns(entries.sparkSession, path)
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
    if step.anew:
        merging = merging.whenNotMatchedBySourceDelete()
    merging.execute()


def _last_of_each_key(entries: DataFrame, step: Step) -> DataFrame:
    images = entries.where("_query is null")
    in_step = images.where(sql.col("_offset").between(step.offsets.start, step.offsets.stop - 1))
    by_key = Window.partitionBy(*map(identifier, step.key)).orderBy(sql.desc("_offset"), sql.desc("_row"))
    # The rank takes the name of a column of the change log's own: no column of the table can have it.
    return in_step.withColumn("_row", sql.row_number().over(by_key)).where("_row = 1")


def _key(table: Table) -> tuple[str, ...]:
    return tuple(table.columns[place].name for place in table.primary_key)


def _name(table: Table) -> str:
    return f"{table.schema}.{table.name}"
