"""The change log of a lake: every change of every table, in the order of the source. Mirrors are made from it.

An entry is a row image, a statement, or a record that could not be used. A row image's values are in `cells`, as the
exact text that the database has; `_version` says which definition of the table they belong to. So no change of a
table's columns ever changes an entry.
"""

from datetime import date, datetime

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus_changes.tables import TableName
from databus_core.errors import FatalError
from databus_core.kafka_ends import Offsets
from databus_spark.formats import open_table
from databus_spark.sequences import between, last_of, transaction_of
from databus_spark.table_changes import TableChanges, table_changes
from databus_spark.types import Columns, literal

COLUMNS: Columns = {
    "_seq": "string",
    "_schema": "string",
    "_table": "string",
    "_action": "string",
    "_row": "int",
    "_query": "string",
    "cells": "array<binary>",
    "_version": "bigint",
    "_definition": "string",
    "_file": "string",
    "_position": "bigint",
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_time": "timestamp",
    "_day": "date",
}
_PARTITIONS = ("_schema", "_table", "_day")
#: Entries are looked for by transaction and by time. Statistics of all columns cost more than decoding the records.
_SKIPPING = ("_seq", "_time")
_TRIMMED = "databus.trimmed"


class LogState(msgspec.Struct, frozen=True):
    """How far a change log has come. It is committed with the entries."""

    #: ordinal of the last transaction: all its entries and those before it are in the log. -1: none
    transaction: int = -1
    #: where the next records are in Kafka
    offsets: Offsets = {}
    #: all mirrors had all transactions up to this one when the entries were appended
    mirrored: int = -1
    #: topics that no longer existed then, and whose tables were parked; their offsets are kept
    gone: list[str] = []


class ChangeLog:
    """The change log, as one session sees it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._table = open_table(spark, path)
        #: text of the last commit that was read or written here, and ordinal of its last transaction
        self._text, self._committed = "", -1
        #: the entries of the last commit, if they are kept, and the ordinal of the last transaction before them
        self._kept: tuple[DataFrame, int] | None = None

    @property
    def exists(self) -> bool:
        """Whether it has begun."""
        return self._table.exists

    def state(self) -> LogState:
        """Return how far it has come. It must exist."""
        if not (text := self._table.text()):
            raise FatalError(
                f"{self._table.path}: no commit that is left says how far the change log has come: restore an earlier "
                "version of it, or stop the sink, remove the lake and start the sink again"
            )
        state = msgspec.json.decode(text, type=LogState)
        self._text, self._committed = text, state.transaction
        return state

    def append(self, entries: DataFrame, after: LogState, *, keep: bool = False) -> bool:
        """Append the entries that lead from the last commit to a state.

        What follows a commit is appended only once. Returns whether the log has the new state then; it does not if
        another sink has appended something. `keep`: mirrors read the entries from memory, until the next append.
        """
        # The table's own check, which is also right if both append at the same time, forgets commits after a day.
        if self._table.text() != self._text:
            return False
        if self._kept:
            self._kept[0].unpersist()
        if keep:  # each mirror reads all partitions, and there are more of them the more tables there are
            entries = entries.coalesce(entries.sparkSession.sparkContext.defaultParallelism)
        self._kept = (entries.persist(), self._committed) if keep else None
        text = _encode(after)
        self._table.append(entries, text, f"after-{self._committed}")
        if self._table.text() != text:
            return False
        self._text, self._committed = text, after.transaction
        return True

    def start(self, offsets: Offsets) -> LogState:
        """Create an empty log that begins at these offsets."""
        state = LogState(offsets=offsets)
        self._text = _encode(state)
        self._table.empty(COLUMNS, self._text, _PARTITIONS, _SKIPPING)
        return state

    def trim(self, day: date) -> None:
        """Delete the days before this one, up to the first one that has an entry that not all mirrors have."""
        missing = self._table.read().where(f"_seq > '{last_of(self.state().mirrored)}'").agg(sql.min("_day"))
        day = min(filter(None, (day, missing.collect()[0][0])))
        old = f"_day < date'{day}'"
        last = self._table.read().where(old).agg(sql.max("_seq")).collect()[0][0]
        if last:
            # First, and never less than before: an interrupted deletion must not look like a complete log.
            self._table.set_properties({_TRIMMED: str(max(transaction_of(last), self.trimmed))})
            self._table.discard(old)

    @property
    def trimmed(self) -> int:
        """Ordinal of the last transaction of which entries may have been deleted. -1: none."""
        return int(self._table.properties().get(_TRIMMED, "-1")) if self._table.exists else -1

    def transaction_at(self, moment: datetime) -> int | None:
        """Return the last transaction that was in Kafka at a time; None if the log begins later."""
        # An entry that could not be used may have the sequence of its batch's end.
        entries = self._table.read().where(sql.col("_time") <= sql.lit(moment)).where("_action <> 'invalid'")
        last = entries.agg(sql.max("_seq")).collect()[0][0]
        return transaction_of(last) if last else None

    def as_of_now(self) -> DataFrame:
        """Return all entries that it has now, also if they are read later."""
        return self._table.read(self._table.newest())

    def read(self, after: int = -1) -> DataFrame:
        """Return at least all entries after a transaction."""
        if self._kept and self._kept[1] <= after:
            return self._kept[0]
        return self._table.read()

    def entries(self, name: TableName, after: int, last: int, condition: str = "true") -> DataFrame:
        """Return the entries of a table after one transaction, up to and with another one."""
        schema, table = map(literal, name)
        return self.read(after).where(
            f"_schema = {schema} and _table = {table} and {between(after, last)} and ({condition})"
        )

    def changes(self, after: int, last: int) -> dict[TableName, TableChanges]:
        """Return what the log has of each table after one transaction, up to and with another one.

        Records whose table is not known are under ("", "").
        """
        return table_changes(self.read(after).where(between(after, last)))

    def changes_of(self, name: TableName, after: int, last: int, condition: str = "true") -> TableChanges:
        """Return what the log has of a table after one transaction, up to and with another one."""
        return table_changes(self.entries(name, after, last, condition)).get(name, TableChanges())


def _encode(state: LogState) -> str:
    return msgspec.json.encode(state).decode()
