"""The states of the lake's tables: which follow their sources, and which are parked, since when and why."""

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.functions import timestamp_seconds

from databus_changes.tables import TableName
from databus_core.errors import LakeUnavailable
from databus_core.events import full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import sink as metrics
from databus_core.progress import Routes
from databus_core.routes import described, fingerprint_of, published_as, rules_of
from databus_core.settings.rules import Rule
from databus_core.table_filter import TableFilter
from databus_spark.formats import open_table
from databus_spark.local_rows import local_rows
from databus_spark.types import TypeOptions

log = get_logger(__name__)

_COLUMNS = (
    "schema string, table string, state string, reason string, heals boolean, transaction bigint, since double, "
    "gaps array<struct<first: bigint, last: bigint>>"
)
#: why a table is parked that was published by another rule
OTHER_RULES = "it was published by another rule of publisher.routes before"


class Parked(msgspec.Struct, frozen=True):
    """Why a mirror does not follow its table any more."""

    reason: str
    #: whether the table can be mirrored after it is loaded again
    heals: bool
    #: ordinal of the last transaction that a dump must have from which the table is loaded again
    transaction: int
    #: in seconds since the epoch
    since: float

    def advice(self, table: str) -> str:
        """Return what loads the table, whose full name this is, again."""
        resync = f"databus-spark-sink resync {table}"
        if self.heals:
            return f"the sink loads it again (with spark.heal: manual, run {resync})"
        return f"when that has changed, run {resync}, or leave it out of spark.tables"


class Gap(msgspec.Struct, frozen=True):
    """Transactions, from the first to the last, of which the change log may lack changes of a table.

    If the last one is before the first one, no changes are missing, but the rows of both sides do not belong together.
    """

    first: int
    last: int

    def has(self, other: "Gap") -> bool:
        """Return whether the other gap is a part of this one."""
        return self.first <= other.first and other.last <= self.last


class _Settings(msgspec.Struct, frozen=True):
    """The text of each commit: the settings with which the mirrors were made."""

    types: TypeOptions
    #: patterns of `spark.tables` at the last start, and those whose tables were loaded
    followed: list[str]
    loaded: list[str]
    #: see `databus_core.routes.described`; None: not known
    rules: list[dict[str, Any]] | None = None
    #: ordinal of the last transaction that was published by other rules
    rules_after: int = 0
    #: differs in each commit
    mark: str = ""


class TableStates:
    """The tables that the lake has ever had, and the settings with which their mirrors were made.

    Both are in a table of the lake, which is written at each change.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._table = open_table(spark, path)
        self._lock = Lock()
        self._states: dict[TableName, Parked | None] = {}
        self._gaps: dict[TableName, list[Gap]] = {}
        #: options with which the mirrors were made that are not parked
        self.types = TypeOptions()
        #: patterns of `spark.tables` for which no dump is due: their tables were loaded, or are by the first dump
        self.loaded: list[str] = []
        #: patterns of `spark.tables` at the last start of a sink
        self.patterns: list[str] = []
        self._rules: list[dict[str, Any]] | None = None
        #: ordinal of the last transaction that was published by other rules
        self.rules_after = 0
        self._text = ""
        if self._table.exists:
            self._text = self._table.text()
            if self._text:
                settings = msgspec.json.decode(self._text, type=_Settings)
                self.types, self.patterns, self.loaded = settings.types, settings.followed, settings.loaded
                self._rules, self.rules_after = settings.rules, settings.rules_after
            for row in self._table.read().collect():
                is_parked = row.state == "parked"
                parked = Parked(row.reason, row.heals, row.transaction, row.since.timestamp()) if is_parked else None
                self._states[row.schema, row.table] = parked
                self._gaps[row.schema, row.table] = [Gap(*each) for each in row.gaps]
        metrics.PARKED.set(len(self.out_of_date))

    @property
    def known(self) -> list[TableName]:
        """All tables."""
        return sorted(self._states)

    @property
    def parked(self) -> dict[TableName, Parked]:
        """The parked tables."""
        return {name: parked for name, parked in self._states.items() if parked}

    @property
    def out_of_date(self) -> list[TableName]:
        """The parked tables that match the patterns of `spark.tables`: their mirrors are not up to date."""
        followed = TableFilter(self.patterns)
        return [name for name in self.parked if followed.matches(*name)]

    def gaps(self, name: TableName) -> list[Gap]:
        """Return where the change log may lack changes of a table. They stay when it is loaded again."""
        return self._gaps.get(name, [])

    def add_gaps(self, gaps: Mapping[TableName, Gap]) -> None:
        """Record that the change log may lack changes of tables."""
        new = {name: gap for name, gap in gaps.items() if not any(each.has(gap) for each in self.gaps(name))}
        if new:
            self._gaps |= {
                name: [*(each for each in self.gaps(name) if not gap.has(each)), gap] for name, gap in new.items()
            }
            self._write({})

    def add(self, names: Iterable[TableName]) -> None:
        """Add tables, unless they are known."""
        if new := [name for name in names if name not in self._states]:
            self._write(dict.fromkeys(new))

    def returning(self, patterns: list[str]) -> list[TableName]:
        """Return the tables that match these patterns, but did not match those of the last start."""
        before, now = TableFilter(self.patterns), TableFilter(patterns)
        return [name for name in self.known if now.matches(*name) and not before.matches(*name)]

    def set_patterns(self, patterns: list[str]) -> None:
        """Record the patterns of this start, and forget that tables of others were loaded."""
        if patterns != self.patterns:
            self.patterns = patterns
            self.loaded = [each for each in self.loaded if each in patterns]
            self._write({})

    def set_loaded(self, pattern: str) -> None:
        """Record that the tables of a pattern were loaded."""
        self.loaded = [*self.loaded, pattern]
        self._write({})

    def request_loads(self, patterns: list[str]) -> None:
        """Record that the lake may lack tables of these patterns, so a dump of them is loaded."""
        self.loaded = [each for each in self.loaded if each not in patterns]
        self._write({})

    def change_rules(self, rules: Sequence[Rule], routes: Routes, transaction: int) -> list[TableName]:
        """Record the rules by which tables are published; park and return the tables that were published by other ones.

        If the publisher's rules have changed several times, nobody knows by which ones, so all are parked.
        """
        before, after, now = self._rules, self.rules_after, described(rules)
        if before is None or (before == now and after == routes.after):
            names = []
        elif after == routes.after or (after, fingerprint_of(before)) == (routes.before_after, routes.before):
            old = rules_of(before)
            names = [name for name in self.known if published_as(old, *name) != published_as(rules, *name)]
        else:
            names = self.known
        if names or before != now or after != routes.after:
            last = max(transaction, routes.after)
            # With the old rules still in the lake: if this is interrupted, it is done again.
            self.add_gaps(dict.fromkeys(names, Gap(transaction + 1, last)))
            self._rules, self.rules_after = now, routes.after
            self.park_all(names, OTHER_RULES, last)
        return names

    def park(self, name: TableName, reason: str, transaction: int, *, heals: bool = True) -> None:
        """Park a table; `heals`: whether it can be mirrored after it is loaded again."""
        self.park_all([name], reason, transaction, heals=heals)

    def park_for_load(self, names: Iterable[TableName], reason: str, transaction: int) -> None:
        """Park tables without an error, because they will be loaded: they stay parked if that is interrupted."""
        if held := list(names):
            self._write({name: self._parked(name, reason, transaction, heals=True) for name in held})

    def release(self, name: TableName) -> None:
        """Let a table flow again, if it is parked."""
        if name in self.parked:
            table = full_name(*name)
            log.info(LogEvent.MIRROR_RELEASED, f"{table} is not parked any more", table=table)
            self._write({name: None})

    def change_types(self, types: TypeOptions, names: list[TableName], transaction: int) -> None:
        """Record other options for types, and park the tables whose mirrors were not made with them."""
        self.types = types
        self.park_all(names, "it must be loaded again with the new settings of spark.types", transaction)

    def park_all(self, names: list[TableName], reason: str, transaction: int, *, heals: bool = True) -> None:
        """Park tables with one commit."""
        parked = {name: self._parked(name, reason, transaction, heals=heals) for name in names}
        for name, each in parked.items():
            table = full_name(*name)
            text = f"the mirror of {table} is parked, because {reason}; all other tables flow; {each.advice(table)}"
            log.error(LogEvent.MIRROR_PARKED, text, table=table)
        self._write(parked)

    def _parked(self, name: TableName, reason: str, transaction: int, *, heals: bool) -> Parked:
        """Return the state of a table that is parked, maybe once more: its dump must have all that was in doubt."""
        before = self._states.get(name)
        return Parked(reason, heals, max(transaction, before.transaction if before else -1), time.time())

    def _write(self, changed: Mapping[TableName, Parked | None]) -> None:
        with self._lock:
            if (self._table.text() if self._table.exists else "") != self._text:
                raise LakeUnavailable(f"another sink writes to {self._table.path}: stop one of them")
            self._states |= changed
            metrics.PARKED.set(len(self.out_of_date))
            rows = [_row(name, parked, self.gaps(name)) for name, parked in sorted(self._states.items())]
            states = local_rows(self._table.spark, rows, _COLUMNS)
            settings = _Settings(
                self.types, self.patterns, self.loaded, self._rules, self.rules_after, secrets.token_hex(4)
            )
            text = msgspec.json.encode(settings).decode()
            self._table.overwrite(states.withColumn("since", timestamp_seconds("since")), text)
            self._text = text


def _row(name: TableName, parked: Parked | None, gaps: list[Gap]) -> dict[str, object]:
    state = "parked" if parked else "live"
    row: dict[str, object] = {"schema": name[0], "table": name[1], "state": state, "gaps": gaps}
    return row | msgspec.structs.asdict(parked) if parked else row
