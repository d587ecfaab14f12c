"""The lake: one micro-batch goes into the change log, and from there into the mirror of each table.

The change log is the truth. A mirror that is behind, because the sink was killed or the mirror could not be written,
catches up from it.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import msgspec
from pyspark.sql import DataFrame, SparkSession

from databus_changes.tables import TableName
from databus_core.errors import InvalidSettings, LakeUnavailable
from databus_core.events import Table
from databus_core.kafka_ends import Offsets
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import sink as metrics
from databus_core.progress import Reset, Routes
from databus_core.settings.rules import Rule
from databus_core.table_filter import TableFilter
from databus_spark import messages
from databus_spark.changelog import ChangeLog, LogState
from databus_spark.dead_letters import decode_dead_letters
from databus_spark.folder import Folder
from databus_spark.formats import other_format
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.renames import UNKNOWN
from databus_spark.table_changes import TableChanges
from databus_spark.types import TypeOptions
from databus_spark_sink.mirrors import Mirrors
from databus_spark_sink.quarantine import Quarantine
from databus_spark_sink.tables import OTHER_RULES, Gap, TableStates

log = get_logger(__name__)

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
        self._mirrors = Mirrors(spark, layout, self.log, self.tables, types, rules)
        self._quarantine = Quarantine(spark, self.log, layout.quarantine)
        #: topic → the last transaction of which records may be missing, since the start of the sink
        self._lost: dict[str, int] = {}
        #: ordinal of the last reset since the start of the sink
        self._reset = -1
        if not self.is_loaded:
            self.tables.loaded = tables
        # They did not follow the change log meanwhile.
        returning = self.tables.returning(tables)
        self.tables.add_gaps({name: Gap(self._mirrors.transaction(name) + 1, self._last) for name in returning})
        self.tables.park_for_load(returning, "it did not match spark.tables for a time", self._last)
        self.tables.set_patterns(tables)
        if self.tables.types != types:
            others = self._mirrors.with_other_types() if self.is_loaded else []
            self.tables.change_types(types, others, self._last)
        if self.is_loaded:  # the sink may have been stopped before all mirrors had the last batch
            self._follow(self.log.changes(self.state.mirrored, self._last), self.state.mirrored)

    def close(self) -> None:
        """Wait until the mirrors that are being written are complete."""
        self._mirrors.close()

    @property
    def _last(self) -> int:
        return self.state.transaction

    def mirror(self, name: TableName) -> Mirror:
        """Return a table's mirror."""
        return self._mirrors.open(name)

    # --- what the stream does not have

    def load(self, rows: DataFrame, table: Table, state: MirrorState) -> bool:
        """Load rows of a dump into a mirror. `catch_up` adds what is newer, and releases the table.

        Returns whether the mirror has the state then; otherwise the table is parked.
        """
        name = (table.schema, table.name)
        if state.transaction < (lost := max(self._reset, self._lost_of(name))):
            self._mirrors.park(name, "records that are newer than its dump are missing", lost)
            return False
        return self._mirrors.load(rows, table, state, self._last)

    def empty_missing(self, name: TableName, transaction: int) -> None:
        """Empty the mirror of a parked table that is not in the database any more after a transaction; release it."""
        parked = self.tables.parked.get(name)
        if parked and parked.transaction <= transaction:  # else it was released meanwhile, or parked again
            self._mirrors.empty_missing(name, transaction)
            self.catch_up()

    def begin(self, offsets: Offsets) -> None:
        """Begin the change log at these offsets, after the mirrors were loaded."""
        self.state = self.log.start(offsets)
        self.is_loaded = True

    def follow_rules(self, routes: Routes) -> None:
        """Park the tables that are published by other rules than before."""
        changed = self.tables.change_rules(self._rules, routes, self._last)
        self._mirrors.stop_retrying(changed)
        self._load_patterns_of([name for name in changed if not self._mirrors.has_rows(name)])

    def _load_patterns_of(self, names: list[TableName]) -> None:
        """Let the patterns be loaded that these tables match: only a dump of a pattern shows whether a table exists."""
        if patterns := [each for each in self._patterns if any(TableFilter([each]).matches(*name) for name in names)]:
            self.tables.request_loads(patterns)

    def park_tables_of(self, topic: str, reason: str, transaction: int, *, with_dropped: bool = True) -> bool:
        """Park all tables that a topic may have records of: some are missing, none of them after the transaction.

        `with_dropped`: also those that have no mirror, because they were dropped.

        Returns whether the lake knows a table of the topic.
        """
        self._lost[topic] = max(transaction, self._lost.get(topic, -1))
        known = [name for name in self.tables.known if self._publishes(topic, name)]
        # Records that were there before the topic was found may be of any older transaction.
        is_read = topic in self.state.offsets and transaction > self._last
        self.tables.add_gaps(dict.fromkeys(known, Gap(self._last + 1 if is_read else 0, transaction)))
        for name in known:
            if (with_dropped or self._mirrors.has_rows(name)) and not self._mirrors.has_all(name, transaction):
                self._mirrors.park(name, reason, transaction)
        return bool(known)

    def lose_dead_letters(self, topic: str, reason: str, transaction: int) -> None:
        """Record that changes that became dead letters may be missing, none of them after the transaction."""
        text = f"{reason}: databus-spark-sink verify finds the mirrors that lack rows because of that"
        log.warning(LogEvent.RECORDS_MISSING, text, topic=topic)
        self.tables.add_gaps(dict.fromkeys(self.tables.known, Gap(self._last + 1, transaction)))

    def park_after_reset(self, reset: Reset) -> None:
        """Park all tables, because the pipeline was reset: changes may be missing, or come again.

        Then the patterns are loaded again. If all rows come again in the stream, this is not needed: each table is
        released by the TRUNCATE before its rows.
        """
        self._reset = reset.transaction
        self.tables.add_gaps(dict.fromkeys(self.tables.known, Gap(reset.transaction, reset.transaction)))
        names = [name for name in self.tables.known if not self._mirrors.has_all(name, reset.transaction)]
        behind = [name for name in names if self._mirrors.has_rows(name)]
        if not behind and len(names) < len(self.tables.known):
            return  # a dump that is newer than the reset has all; the others were dropped before it
        log.warning(LogEvent.RECORDS_MISSING, "the pipeline was reset: all tables are loaded again")
        if reset.snapshot:
            later = {name for name, each in self.tables.parked.items() if each.transaction > reset.transaction}
            names = [name for name in behind if name not in later]
        else:
            self.tables.request_loads(self._patterns)
        reason = "the pipeline was reset, and publishes all rows again" if reset.snapshot else "the pipeline was reset"
        self._mirrors.park_all(names, reason, reset.transaction, heals=not reset.snapshot)

    def _lost_of(self, name: TableName) -> int:
        return max((last for topic, last in self._lost.items() if self._publishes(topic, name)), default=-1)

    # --- the stream

    def apply(
        self, records: DataFrame | None, end: LogState, dead_letters: DataFrame | None = None, *, note: bool = False
    ) -> None:
        """Write the Kafka records between the change log's state and `end`, which are all up to a transaction.

        `records` are those of the tables' topics. `note`: the state is committed, also if there are no records.
        """
        after, last, decoded = self._last, end.transaction, list[DataFrame]()
        if records is not None:
            decoded.append(messages.decode_records(records, after, last))
        if dead_letters is not None:
            decoded.append(decode_dead_letters(dead_letters, self._patterns, after, last))
        if note and not decoded:
            decoded.append(self.log.read().where("false"))
        if not decoded:
            self.state = msgspec.structs.replace(end, mirrored=self.state.mirrored)
            self.catch_up()
            return
        mirrored = self.state.mirrored if self._mirrors.is_any_behind else self._last
        end = msgspec.structs.replace(end, mirrored=mirrored)
        keep = _count(self.state.offsets, end.offsets) < _FEW_RECORDS
        with metrics.STEP_SECONDS.labels("change_log").time():
            is_appended = self.log.append(reduce(DataFrame.union, decoded), end, keep=keep)
        if not is_appended:
            raise LakeUnavailable(f"another sink writes to {self.layout.root}: stop one of them")
        before, self.state = self.state, end
        self._follow(self.log.changes(before.transaction, end.transaction), before.transaction)
        metrics.BATCHES.inc()

    def catch_up(self) -> None:
        """Bring mirrors that are behind to the change log's state."""
        self._follow({}, self._last)

    def _follow(self, changes: dict[TableName, TableChanges], after: int) -> None:
        """Bring the mirrors of these tables, and of those that are behind, to the change log's state.

        `changes` are those of the transactions after `after`, which is -1 for the first batch of a lake.
        """
        unknown = changes.pop(UNKNOWN, TableChanges())
        if unknown.statements or any(s.action == "invalid" for each in changes.values() for s in each.statements):
            self._quarantine.follow(self._last)
        changes = {name: each for name, each in changes.items() if self._filter.matches(*name)}
        metrics.ROWS.inc(sum(images.count for each in changes.values() for images in each.images))
        known = set(self.tables.known)
        new = [name for name, each in changes.items() if each.definitions and name not in known]
        for name in new:  # before they are known: this may be interrupted, and repeated
            # The first batch may have old topics of tables that were dropped before the dump.
            if after >= 0 and changes[name].first <= (last := self.tables.rules_after):
                self._load_patterns_of([name])
                self.tables.add_gaps({name: Gap(0, last)})
                self._mirrors.park(name, OTHER_RULES, last)
            elif (lost := self._lost_of(name)) >= changes[name].first:
                self.tables.add_gaps({name: Gap(0, lost)})
                self._mirrors.park(name, "earlier records of it are missing", lost)
        self.tables.add(new)
        for statement in unknown.statements:
            if statement.query != messages.FOREIGN:
                reason = f"{statement.place} cannot be used: {statement.query}"
                for name in self.tables.known:
                    if self._publishes(statement.topic, name):
                        self.tables.add_gaps({name: Gap(statement.transaction, statement.transaction)})
                        self._mirrors.park(name, reason, statement.transaction)
        self._mirrors.follow(changes, self._last)

    # --- its state

    @property
    def is_behind(self) -> bool:
        """Whether there are mirrors that could not be written, and are not parked."""
        return bool(self._mirrors.behind)

    @property
    def degraded(self) -> str:
        """What does not work, for /readyz; empty: nothing."""
        return self._mirrors.degraded


def _count(before: Offsets, after: Offsets) -> int:
    """Return the number of Kafka records between two states."""
    return sum(
        offset - before.get(topic, {}).get(partition, 0)
        for topic, partitions in after.items()
        for partition, offset in partitions.items()
    )
