"""The lake: one micro-batch goes into the change log, and from there into the mirror of each table.

The change log is the truth. A mirror that is behind, because the sink was killed or the mirror could not be written,
catches up from it.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from databus.errors import InvalidSettings, LakeUnavailable
from databus.events import Table, first_names, full_name
from databus.log_events import LogEvent
from databus.logs import bound, get_logger
from databus.metrics import SINK_BATCHES, SINK_ROWS, SINK_STEP_SECONDS
from databus.settings.rules import Rule
from databus.table_filter import TableFilter
from databus_changes.tables import TableName
from databus_spark import messages
from databus_spark.changelog import ChangeLog, LogState, Offsets
from databus_spark.dead_letters import decode_dead_letters
from databus_spark.errors import TableParked
from databus_spark.folder import Folder
from databus_spark.formats import other_format
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.renames import UNKNOWN, Rename, renames
from databus_spark.table_changes import TableChanges
from databus_spark.types import TypeOptions
from databus_spark_sink.quarantine import Quarantine
from databus_spark_sink.tables import TableStates

log = get_logger(__name__)

#: mirrors that are written at the same time
_PARALLEL = 4
#: the entries of a batch with fewer records are kept in memory until all mirrors have them
_FEW_RECORDS = 20_000


class Lake:
    """Writes micro-batches to the lake."""

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        tables: list[str],
        publishes: Callable[[str, TableName], bool],
        types: TypeOptions,
        rules: Sequence[Rule],
    ) -> None:
        """Open a lake, and bring its mirrors to the change log's state.

        `tables` are the patterns of the tables that belong to it. `publishes` says whether a topic may have records of
        a table. `types` are the options of all mirrors, `rules` those by which rows are published.
        """
        self._spark = spark
        self._publishes = publishes
        self.layout = layout
        self.types = types
        self._rules = rules
        #: dumps that are being loaded
        self.downloads = Folder(spark, layout.downloads)
        self._patterns = tables
        self._filter = TableFilter(tables)
        self.log = ChangeLog(spark, layout.changes)
        #: whether a dump was loaded, and the change log has begun after it
        self.is_loaded = self.log.exists
        if other := other_format(spark, layout.changes):
            raise InvalidSettings(
                f"{layout.root} is a lake in {other}: set spark.table_format to {other}, or choose another spark.lake"
            )
        self.state = self.log.state() if self.is_loaded else LogState()
        self.tables = TableStates(spark, layout.tables)
        self._quarantine = Quarantine(spark, self.log, layout.quarantine)
        self._mirrors: dict[TableName, Mirror] = {}
        #: topic → the last transaction of which records may be missing, since the start of the sink
        self._lost: dict[str, int] = {}
        #: tables whose mirrors are behind the change log
        self._behind: set[TableName] = set()
        self._pool = ThreadPoolExecutor(_PARALLEL, "mirror")
        if not self.is_loaded:
            self.tables.loaded = tables
        for name in self.tables.returning(tables):
            if self._has_mirror(name):  # it has not followed the change log meanwhile
                self.tables.hold(name, "it did not match spark.tables for a time", self.state.transaction)
        self.tables.follow(tables)
        if self.tables.types != types:
            made_otherwise = self._made_otherwise() if self.is_loaded else []
            self.tables.change_types(types, made_otherwise, self.state.transaction)
        if self.is_loaded:  # the sink may have been stopped before all mirrors had the last batch
            self._follow(self.log.changes(self.state.mirrored, self.state.transaction))

    def close(self) -> None:
        """Wait until the mirrors that are being written are complete."""
        self._pool.shutdown()

    def mirror(self, name: TableName) -> Mirror:
        """Return a table's mirror."""
        if name not in self._mirrors:
            session = self._spark.newSession()  # see databus_spark.table
            self._mirrors[name] = Mirror(session, self.log, name, self.layout.mirror(*name), self.types, self._rules)
        return self._mirrors[name]

    def load(self, rows: DataFrame, table: Table, state: MirrorState) -> bool:
        """Load rows of a dump into a mirror. `catch_up` adds what is newer, and releases the table.

        Returns whether the mirror has the state then; otherwise the table is parked.
        """
        name = (table.schema, table.name)
        lost = max((last for topic, last in self._lost.items() if self._publishes(topic, name)), default=-1)
        if state.transaction < lost:
            self._park(name, "records that are newer than its dump are missing", lost)
            return False
        try:
            self.mirror(name).load(rows, table, state)
        except TableParked as error:
            self._park(name, str(error), self.state.transaction, heals=error.heals)
            return False
        if self.is_loaded:
            self._behind.add(name)
        return True

    def catch_up(self) -> None:
        """Bring mirrors that are behind to the change log's state."""
        self._follow({})

    @property
    def is_behind(self) -> bool:
        """Whether there are mirrors that could not be written, and are not parked."""
        return bool(self._behind - self.tables.parked.keys())

    def begin(self, offsets: Offsets) -> None:
        """Begin the change log at these offsets, after the mirrors were loaded."""
        self.state = self.log.start(offsets)
        self.is_loaded = True

    @property
    def degraded(self) -> str:
        """What does not work, for /readyz; empty: nothing."""
        found = {"parked": self.tables.parked.keys(), "behind": self._behind - self.tables.parked.keys()}
        return "; ".join(
            f"{what}: {first_names([full_name(*name) for name in sorted(names)])}"
            for what, names in found.items()
            if names
        )

    def lose(self, topic: str, reason: str, transaction: int, *, dropped: bool = True) -> None:
        """Park all tables that a topic may have records of: some are missing, none of them after the transaction.

        `dropped`: also those that have no mirror, because they were dropped.
        """
        self._lost[topic] = transaction
        known = [name for name in self.tables.known if self._publishes(topic, name)]
        for name in known:
            if (dropped or self._has_mirror(name)) and not self._is_complete(name, transaction):
                self._park(name, reason, transaction)
        if not known:
            text = "its tables are loaded from a dump, at the latest by databus-spark-sink resync SCHEMA.TABLE"
            log.warning(LogEvent.RECORDS_MISSING, f"{reason}: {text}", topic=topic)

    def _is_complete(self, name: TableName, transaction: int) -> bool:
        """Return whether a mirror has all transactions up to this one."""
        try:
            state = None if name in self._behind else self.mirror(name).state
        except (PySparkException, Py4JError):  # then it is parked, and loaded again
            return False
        return state is not None and state.transaction >= transaction

    def apply(self, records: DataFrame | None, end: LogState, dead_letters: DataFrame | None = None) -> None:
        """Write the Kafka records between the change log's state and `end`, which are all up to a transaction.

        `records` are those of the tables' topics.
        """
        after, last, decoded = self.state.transaction, end.transaction, list[DataFrame]()
        if records is not None:
            decoded.append(messages.decode_records(records, after, last))
        if dead_letters is not None:
            decoded.append(decode_dead_letters(dead_letters, self._patterns, after, last))
        if not decoded:
            self.state = msgspec.structs.replace(end, mirrored=self.state.mirrored)
            self.catch_up()
            return
        mirrored = self.state.mirrored if self._behind else self.state.transaction
        end = msgspec.structs.replace(end, mirrored=mirrored)
        keep = _count(self.state.offsets, end.offsets) < _FEW_RECORDS
        with SINK_STEP_SECONDS.labels("change_log").time():
            is_appended = self.log.append(reduce(DataFrame.union, decoded), end, keep=keep)
        if not is_appended:
            raise LakeUnavailable(f"another sink writes to {self.layout.root}: stop one of them")
        before, self.state = self.state, end
        self._follow(self.log.changes(before.transaction, end.transaction))
        SINK_BATCHES.inc()

    def _made_otherwise(self) -> list[TableName]:
        """Return the tables whose mirrors were made, or could not be made, with other options for types."""
        found = []
        for name in self.tables.known:
            state, table = self.mirror(name).state, self.mirror(name).definition
            parked = self.tables.parked.get(name)
            has_other_types = state and state.types != self.types and table and table.primary_key
            if has_other_types or (state is None and parked and not parked.heals):
                found.append(name)
        return found

    def _follow(self, changes: dict[TableName, TableChanges]) -> None:
        """Bring the mirrors of these tables, and of those that are behind, to the change log's state."""
        last = self.state.transaction
        unknown = changes.pop(UNKNOWN, TableChanges())
        if unknown.statements or any(s.action == "invalid" for each in changes.values() for s in each.statements):
            self._quarantine.follow(last)
        changes = {name: each for name, each in changes.items() if self._filter.matches(*name)}
        SINK_ROWS.inc(sum(images.count for each in changes.values() for images in each.images))
        for name in sorted(changes.keys() | self._behind):
            try:
                state = self.mirror(name).state
                # The dump of a mirror may have a part of these changes; one that is behind lacks more than these.
                if name in self._behind or (state and state.base):
                    changes[name] = self.mirror(name).changes(last)
            except (PySparkException, Py4JError) as error:
                changes.pop(name, None)
                self._set_behind(name, error)
        self.tables.add(name for name, each in changes.items() if each.definitions)
        for statement in unknown.statements:
            if statement.query != messages.FOREIGN:
                reason = f"{statement.place} cannot be used: {statement.query}"
                for name in self.tables.known:
                    if self._publishes(statement.topic, name):
                        self._park(name, reason, statement.transaction)
        for rename in renames(changes):
            self._rename(rename, changes)
        list(self._pool.map(lambda name: self._advance(name, changes[name], last), sorted(changes)))

    def _advance(self, name: TableName, changes: TableChanges, last: int) -> None:
        """Bring a mirror to a transaction, or park its table."""
        parked = self.tables.parked.get(name)
        resets = [each for each in changes.statements if each.transaction <= last and each.is_reset]
        if parked and name not in self._behind and not any(each.transaction > parked.transaction for each in resets):
            return
        with bound(table=full_name(*name)):
            try:
                with SINK_STEP_SECONDS.labels("mirror").time():
                    self.mirror(name).advance(changes, last)
            except TableParked as error:
                self._park(name, str(error), -1 if error.any_dump else last, heals=error.heals)
            except (PySparkException, Py4JError) as error:
                self._set_behind(name, error)
            else:
                self._behind.discard(name)
                self.tables.release(name)

    def _park(self, name: TableName, reason: str, transaction: int, *, heals: bool = True) -> None:
        """Park a table; if it is behind, it must not be tried again, which would release it."""
        self._behind.discard(name)
        self.tables.park(name, reason, transaction, heals=heals)

    def _set_behind(self, name: TableName, error: Exception) -> None:
        if name not in self.tables.parked:  # else it stays what it is: only a load lets a parked table catch up
            self._behind.add(name)
        self._mirrors.pop(name, None)  # the commit may have been made: its state is read again
        text = f"the mirror of {full_name(*name)} could not be read or written, and is tried again soon"
        log.error(LogEvent.MIRROR_BEHIND, text, cause=error, error=type(error).__name__, table=full_name(*name))

    def _rename(self, rename: Rename, changes: Mapping[TableName, TableChanges]) -> None:
        """Let mirrors follow a statement that renames tables, after all that was before it."""
        before = rename.transaction - 1
        for name in sorted(rename.tables & changes.keys()):
            self._advance(name, changes[name], before)
        for name in sorted(self._behind & rename.tables):
            self._park(name, "its mirror could not be written before the table was renamed", before)
        due = {name: each for name, each in rename.contents.items() if not self._has(name, rename.transaction)}
        doubtful = {name: source for name, (source, _) in due.items() if source and source in self.tables.parked}
        for name, was in doubtful.items():  # before any name is released: this may be interrupted, and repeated
            reason = f"it was renamed from {full_name(*was)}, which was parked"
            self._park(name, reason, rename.transaction)
        for name in due.keys() - doubtful.keys():
            source, statement = due[name]
            if source == UNKNOWN:
                reason = "it was renamed from a table whose rows are not in the lake"
                self._park(name, reason, rename.transaction)
                continue
            try:
                if source is None:
                    self.mirror(name).drop(rename.transaction)
                else:
                    table = changes[name].definitions[statement.version]
                    self.mirror(name).copy(self.mirror(source), table, statement.query, rename.transaction)
            except TableParked as error:
                self._park(name, str(error), rename.transaction, heals=error.heals)
            else:
                self.tables.release(name)

    def _has_mirror(self, name: TableName) -> bool:
        """Return whether a table has a mirror, and was not dropped as far as can be read."""
        try:
            return self.mirror(name).definition is not None
        except (PySparkException, Py4JError) as error:
            self._set_behind(name, error)
            return True

    def _has(self, name: TableName, transaction: int) -> bool:
        """Return whether a table has passed a transaction, or was parked there."""
        state, parked = self.mirror(name).state, self.tables.parked.get(name)
        return max(state.transaction if state else -1, parked.transaction if parked else -1) >= transaction


def _count(before: Offsets, after: Offsets) -> int:
    """Return the number of Kafka records between two states."""
    return sum(
        offset - before.get(topic, {}).get(partition, 0)
        for topic, partitions in after.items()
        for partition, offset in partitions.items()
    )
