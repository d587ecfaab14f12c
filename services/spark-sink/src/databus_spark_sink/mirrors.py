"""The lake's mirrors, which follow the change log at the same time.

One that cannot be read or written now is behind: it catches up with a later batch. One whose rows are in doubt is
parked. Neither stops the others.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from databus_changes.tables import TableName
from databus_core.events import Table, first_names, full_name
from databus_core.log_events import LogEvent
from databus_core.logs import bound, get_logger
from databus_core.metrics import sink as metrics
from databus_core.settings.rules import Rule
from databus_spark.changelog import ChangeLog
from databus_spark.errors import MirrorChanged, TableParked
from databus_spark.folder import Folder
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.renames import UNKNOWN, Rename, renames
from databus_spark.table_changes import TableChanges
from databus_spark.types import TypeOptions
from databus_spark_sink.tables import TableStates

log = get_logger(__name__)

#: mirrors that are written at the same time
_PARALLEL = 4
#: a mirror cannot be read or written now; another time it may
_UNAVAILABLE = PySparkException, Py4JError, MirrorChanged


class Mirrors:
    """The mirrors of a lake."""

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        log: ChangeLog,
        tables: TableStates,
        types: TypeOptions,
        rules: Sequence[Rule],
    ) -> None:
        """`types` are the options of all mirrors, `rules` those by which rows are published."""
        self._spark = spark
        self._layout = layout
        self._log = log
        self._tables = tables
        self.types = types
        self._rules = rules
        self._opened: dict[TableName, Mirror] = {}
        self._behind: set[TableName] = set()
        self._pool = ThreadPoolExecutor(_PARALLEL, "mirror")

    def close(self) -> None:
        """Wait until the mirrors that are being written are complete."""
        self._pool.shutdown()

    def open(self, name: TableName) -> Mirror:
        """Return a table's mirror."""
        if name not in self._opened:
            session = self._spark.newSession()  # see databus_spark.table
            path = self._layout.mirror(*name)
            self._opened[name] = Mirror(session, self._log, name, path, self.types, self._rules)
        return self._opened[name]

    @property
    def behind(self) -> set[TableName]:
        """The mirrors that could not be read or written, and are not parked."""
        return self._behind - self._tables.parked.keys()

    @property
    def is_any_behind(self) -> bool:
        """Whether a mirror lacks changes from before the last batch, also if it is parked until it has them."""
        return bool(self._behind)

    @property
    def degraded(self) -> str:
        """What does not work, for /readyz; empty: nothing."""
        found = {"parked": self._tables.out_of_date, "behind": self.behind}
        return "; ".join(
            f"{what}: {first_names([full_name(*name) for name in sorted(names)])}"
            for what, names in found.items()
            if names
        )

    def load(self, rows: DataFrame, table: Table, state: MirrorState, last: int) -> bool:
        """Load rows of a dump into a mirror; it is behind then. `last` is the log's last transaction.

        Returns whether the mirror has the state then; otherwise the table is parked. Raises MirrorChanged.
        """
        name = (table.schema, table.name)
        try:
            self._open_to_load(name).load(rows, table, state)
        except TableParked as error:
            self.park(name, str(error), last, heals=error.heals)
            return False
        except MirrorChanged:
            self._opened.pop(name)
            raise
        if self._log.exists:
            self._behind.add(name)
        return True

    def _open_to_load(self, name: TableName) -> Mirror:
        """Return a mirror whose rows are replaced. One that is damaged is deleted: nothing can be read from it."""
        try:
            return self.open(name)
        except (PySparkException, Py4JError):
            Folder(self._spark, self._layout.mirror(*name)).delete()
            return self.open(name)

    def empty_missing(self, name: TableName, transaction: int) -> None:
        """Empty the mirror of a table that does not exist any more after a transaction; it is behind then."""
        try:
            self._open_to_load(name).drop(transaction)
        except MirrorChanged:
            self._opened.pop(name)
            raise
        self._behind.add(name)

    def follow(self, changes: dict[TableName, TableChanges], last: int) -> None:
        """Bring the mirrors of these tables, and of those that are behind, to a transaction of the change log."""
        changes = dict(changes)
        for name in sorted(changes.keys() | self._behind):
            try:
                state = self.open(name).state
                # The dump of a mirror may have a part of these changes; one that is behind lacks more than these.
                if name in self._behind or (state and state.base):
                    changes[name] = self.open(name).changes(last)
            except _UNAVAILABLE as error:
                changes.pop(name, None)
                self._set_behind(name, error)
        for rename in renames(changes):
            self._rename(rename, changes)
        list(self._pool.map(lambda name: self._advance(name, changes[name], last), sorted(changes)))

    def park(self, name: TableName, reason: str, transaction: int, *, heals: bool = True) -> None:
        """Park a table."""
        self.park_all([name], reason, transaction, heals=heals)

    def park_all(self, names: list[TableName], reason: str, transaction: int, *, heals: bool = True) -> None:
        """Park tables."""
        self.stop_retrying(names)
        self._tables.park_all(names, reason, transaction, heals=heals)

    def stop_retrying(self, names: list[TableName]) -> None:
        """Do not try mirrors again that are behind, because their tables are parked: that would release them."""
        self._behind.difference_update(names)

    def has_rows(self, name: TableName) -> bool:
        """Return whether a table has a mirror, and was not dropped as far as can be read."""
        try:
            return self.open(name).definition is not None
        except _UNAVAILABLE as error:
            self._set_behind(name, error)
            return True

    def transaction(self, name: TableName) -> int:
        """Return the transaction after which a mirror follows the change log; -1 if it has none."""
        try:
            state = self.open(name).state
        except _UNAVAILABLE:  # then it is loaded again
            return -1
        return state.transaction if state else -1

    def has_all(self, name: TableName, transaction: int) -> bool:
        """Return whether a mirror has all transactions up to this one."""
        return name not in self._behind and self.transaction(name) >= transaction

    def with_other_types(self) -> list[TableName]:
        """Return the tables whose mirrors were made, or could not be made, with other options for types."""
        found = []
        for name in self._tables.known:
            try:
                state, table = self.open(name).state, self.open(name).definition
            except _UNAVAILABLE:
                found.append(name)
                continue
            parked = self._tables.parked.get(name)
            has_other_types = state and state.types != self.types and table and table.primary_key
            if has_other_types or (state is None and parked and not parked.heals):
                found.append(name)
        return found

    def _advance(self, name: TableName, changes: TableChanges, last: int) -> None:
        """Bring a mirror to a transaction, or park its table."""
        parked = self._tables.parked.get(name)
        resets = [each for each in changes.statements if each.transaction <= last and each.is_reset]
        if parked and name not in self._behind and not any(each.transaction > parked.transaction for each in resets):
            return
        with bound(table=full_name(*name)):
            try:
                with metrics.STEP_SECONDS.labels("mirror").time():
                    self.open(name).advance(changes, last)
            except TableParked as error:
                self.park(name, str(error), -1 if error.any_dump else last, heals=error.heals)
            except _UNAVAILABLE as error:
                self._set_behind(name, error)
            else:
                self._behind.discard(name)
                self._tables.release(name)

    def _set_behind(self, name: TableName, error: Exception) -> None:
        if name not in self._tables.parked:  # else it stays what it is: only a load lets a parked table catch up
            self._behind.add(name)
        self._opened.pop(name, None)  # the commit may have been made: its state is read again
        text = (
            f"the mirror of {full_name(*name)} could not be read or written, and is tried again soon; if it is "
            f"damaged, load it again: databus-spark-sink resync {full_name(*name)}"
        )
        log.error(LogEvent.MIRROR_BEHIND, text, cause=error, error=type(error).__name__, table=full_name(*name))

    # --- renamed tables

    def _rename(self, rename: Rename, changes: Mapping[TableName, TableChanges]) -> None:
        """Let mirrors follow a statement that renames tables, after all that was before it."""
        before = rename.transaction - 1
        for name in sorted(rename.tables & changes.keys()):
            self._advance(name, changes[name], before)
        for name in sorted(self._behind & rename.tables):
            self.park(name, "its mirror could not be written before the table was renamed", before)
        due = {name: each for name, each in rename.contents.items() if not self._has_passed(name, rename.transaction)}
        doubtful = {name: source for name, (source, _) in due.items() if source and source in self._tables.parked}
        for name, was in doubtful.items():  # before any name is released: this may be interrupted, and repeated
            reason = f"it was renamed from {full_name(*was)}, which was parked"
            self.park(name, reason, rename.transaction)
        for name in due.keys() - doubtful.keys():
            source, statement = due[name]
            if source == UNKNOWN:
                reason = "it was renamed from a table whose rows are not in the lake"
                self.park(name, reason, rename.transaction)
                continue
            try:
                if source is None:
                    self.open(name).drop(rename.transaction)
                else:
                    table = changes[name].definitions[statement.version]
                    self.open(name).copy(self.open(source), table, statement.query, rename.transaction)
            except TableParked as error:
                self.park(name, str(error), rename.transaction, heals=error.heals)
            except _UNAVAILABLE:
                self._opened.pop(name, None)
                self.park(name, "a mirror could not be read or written when tables were renamed", rename.transaction)
            else:
                self._tables.release(name)

    def _has_passed(self, name: TableName, transaction: int) -> bool:
        """Return whether a table has passed a transaction, or was parked there."""
        parked = self._tables.parked.get(name)
        return self.has_all(name, transaction) or (parked is not None and parked.transaction >= transaction)
