"""Compare a lake's tables with a dump: as of one transaction, while the sink and the database keep running.

The dump of a table is loaded beside its mirror, and what the change log has after the dump is added to it, up to the
mirror's transaction. So both must have the same rows. A table that only one of both has counts after the change log has
what the dump has, and the mirrors have followed.
"""

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.definitions import encode_definition, key_columns
from databus_core.errors import LakeUnavailable
from databus_core.events import full_name
from databus_core.settings import Settings
from databus_spark.changelog import ChangeLog
from databus_spark.compare import differences
from databus_spark.dump_files import read_rows
from databus_spark.folder import Folder
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.renames import renames
from databus_spark.table_changes import Statement, TableChanges
from databus_spark.types import type_options
from databus_spark_sink.compare import verdicts
from databus_spark_sink.compare.verdicts import Verdict
from databus_spark_sink.loads.dumps import ReadyDump
from databus_spark_sink.tables import Parked, TableStates

_POLL_SECONDS = 0.5
#: how long the sink may take to get what the database has
_TIMEOUT_SECONDS = 300


class Comparison:
    """A comparison with one dump. Every method blocks, and may raise LakeUnavailable."""

    def __init__(self, settings: Settings, spark: SparkSession, layout: Layout, dump: ReadyDump) -> None:
        self._settings = settings
        self._spark = spark
        self._layout = layout
        self.dump = dump
        self._types = type_options(settings.spark.types)
        self._log = ChangeLog(spark, layout.changes)
        self.tables = {(table.schema, table.name): table for table in dump.tables}

    def wait_for_log(self) -> None:
        """Wait until the change log has what the dump has."""
        _wait(self._covers, f"the change log in {self._layout.root} does not get what the database has: start the sink")

    def obstacle(self, name: TableName) -> Verdict | None:
        """Return what is to be said of a table that cannot be compared; None if it can be."""
        parked: Parked | None = None

        def is_settled() -> bool:
            nonlocal parked
            parked = self._parked(name)
            return parked is not None or not self._is_pending(name)

        _wait(is_settled, f"the mirror of {full_name(*name)} does not get what the change log has: does the sink run?")
        if parked:
            return verdicts.parked(name, parked)
        table = self.tables.get(name)
        if table and not table.primary_key:
            return verdicts.without_key(name)
        mirror = self._mirror(name)
        if table and mirror.definition:
            return None
        if self._is_changed(name) or not (table or mirror.definition):
            return verdicts.changed(name)
        if table:
            return verdicts.without_mirror(name, sum(file.rows for file in self.dump.files(table)))
        return verdicts.gone(name, mirror.rows()[0].count())

    def compare(self, name: TableName) -> Verdict:
        """Compare a mirror with the dump, whose files of the table are in the lake."""
        table, mirror = self.tables[name], self._mirror(name)
        rows, state = mirror.rows()
        if state.types != self._types:
            raise LakeUnavailable(
                f"the mirror of {table.full_name} was made with other settings of spark.types: "
                "start the sink with these, and wait until it has loaded the mirror again"
            )
        last = max(state.as_of, self._last())
        folder = Folder(self._spark, self._layout.downloads).inside(f"{self.dump.manifest.id}.expected")
        expected = open_mirror(self._settings, self._spark, self._layout, name, folder.path)
        try:
            begin = MirrorState(self.dump.transaction, encode_definition(table), self.dump.base)
            dumped = read_rows(self._spark, self.dump.manifest, table, self.dump.folder, self._types)
            expected.load(dumped, table, begin)
            expected.advance(expected.changes(last), last)
            return verdicts.compared(name, differences(expected.rows()[0], rows, key_columns(table)))
        finally:
            folder.delete()

    def _covers(self) -> bool:
        """Return whether the change log has all changes that the dump has.

        While the lake's tables are quiet, the sink only notes in memory which transactions of other tables it has
        passed. Then the offsets show it.
        """
        state, base = self._log.state(), self.dump.base
        ends = [(topic, partition, end) for topic, each in base.passed.items() for partition, end in each.items()]
        has_all = all(state.offsets.get(topic, {}).get(partition, 0) >= end for topic, partition, end in ends)
        return state.transaction >= base.until or has_all

    def _last(self) -> int:
        """Return the transaction up to which mirrors must have followed the change log."""
        return min(self._log.state().transaction, self.dump.base.until)

    def _is_pending(self, name: TableName) -> bool:
        """Return whether the sink has still to do what the change log has of a table."""
        mirror, last = self._mirror(name), self._last()
        if mirror.definition:
            changes = mirror.changes(last)
            # A mirror that begins with CREATE is as of the transaction before it, while it has no rows.
            return bool(changes.images) or any(each.action != "create" for each in _moves(name, changes)[-1:])
        after = max(self._log.state().mirrored, mirror.state.transaction if mirror.state else -1)
        changes = self._log.changes_of(name, after, last)
        return bool(changes.images or _moves(name, changes)) and not self._is_changed(name)

    def _is_changed(self, name: TableName) -> bool:
        """Return whether a table was created, dropped or renamed after the dump."""
        last, condition = self._log.state().transaction, self.dump.base.newer_entries
        return bool(_moves(name, self._log.changes_of(name, self.dump.transaction, last, condition)))

    def _parked(self, name: TableName) -> Parked | None:
        return TableStates(self._spark, self._layout.tables).parked.get(name)

    def _mirror(self, name: TableName) -> Mirror:
        return open_mirror(self._settings, self._spark, self._layout, name)


def open_mirror(
    settings: Settings, spark: SparkSession, layout: Layout, name: TableName, path: str | None = None
) -> Mirror:
    """Return the mirror of a table, or another one of it that is at this path."""
    log, types = ChangeLog(spark, layout.changes), type_options(settings.spark.types)
    return Mirror(spark, log, name, path or layout.mirror(*name), types, settings.publisher.rules)


def _moves(name: TableName, changes: TableChanges) -> list[Statement]:
    """Return the statements that create, drop or rename a table, in order."""
    found = [each for each in changes.statements if each.action in {"create", "drop"}]
    found += [rename.contents[name][1] for rename in renames({name: changes})]
    return sorted(found, key=lambda each: each.sequence)


def _wait(ready: Callable[[], bool], failure: str) -> None:
    end = time.monotonic() + _TIMEOUT_SECONDS
    while not ready():
        if time.monotonic() > end:
            raise LakeUnavailable(failure)
        time.sleep(_POLL_SECONDS)
