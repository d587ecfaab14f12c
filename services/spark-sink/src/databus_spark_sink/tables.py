"""The states of the lake's tables: which follow their sources, and which are parked, since when and why."""

import time
from collections.abc import Iterable
from threading import Lock

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.functions import timestamp_seconds

from databus.events import full_name
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.metrics import SINK_PARKED
from databus.table_filter import TableFilter
from databus_changes.tables import TableName
from databus_spark.formats import open_table
from databus_spark.types import TypeOptions, literal

log = get_logger(__name__)

_COLUMNS = "schema string, table string, state string, reason string, heals boolean, transaction bigint, since double"


class Parked(msgspec.Struct, frozen=True):
    """Why a mirror does not follow its table any more."""

    reason: str
    #: whether the table can be mirrored after it is loaded again
    heals: bool
    #: ordinal of the last transaction that a dump must have from which the table is loaded again
    transaction: int
    #: in seconds since the epoch
    since: float


class _Settings(msgspec.Struct, frozen=True):
    """The text of each commit: the settings with which the mirrors were made."""

    types: TypeOptions
    #: patterns of `spark.tables` at the last start, and those whose tables were loaded
    followed: list[str]
    loaded: list[str]


class TableStates:
    """The tables that the lake has ever had; the lake's own table of them is written at each change."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._table = open_table(spark, path)
        self._lock = Lock()
        self._states: dict[TableName, Parked | None] = {}
        #: options with which the mirrors were made that are not parked
        self.types = TypeOptions()
        #: patterns of `spark.tables` whose tables were loaded
        self.loaded: list[str] = []
        self._followed: list[str] = []
        if self._table.exists:
            if text := self._table.text():
                settings = msgspec.json.decode(text, type=_Settings)
                self.types, self._followed, self.loaded = settings.types, settings.followed, settings.loaded
            for row in self._table.read().collect():
                is_parked = row.state == "parked"
                parked = Parked(row.reason, row.heals, row.transaction, row.since.timestamp()) if is_parked else None
                self._states[row.schema, row.table] = parked
        SINK_PARKED.set(len(self.parked))

    @property
    def known(self) -> list[TableName]:
        """All tables."""
        return sorted(self._states)

    @property
    def parked(self) -> dict[TableName, Parked]:
        """The parked tables."""
        return {name: parked for name, parked in self._states.items() if parked}

    def add(self, names: Iterable[TableName]) -> None:
        """Add tables, unless they are known."""
        if new := [name for name in names if name not in self._states]:
            self._write(dict.fromkeys(new))

    def returning(self, patterns: list[str]) -> list[TableName]:
        """Return the tables that match these patterns, but did not match those of the last start."""
        before, now = TableFilter(self._followed), TableFilter(patterns)
        return [name for name in self.known if now.matches(*name) and not before.matches(*name)]

    def follow(self, patterns: list[str]) -> None:
        """Keep the patterns of this start, and forget that tables of others were loaded."""
        if patterns != self._followed:
            self._followed = patterns
            self.loaded = [each for each in self.loaded if each in patterns]
            self._write({})

    def set_loaded(self, pattern: str) -> None:
        """Keep that the tables of a pattern were loaded."""
        self.loaded = [*self.loaded, pattern]
        self._write({})

    def park(self, name: TableName, reason: str, transaction: int, *, heals: bool = True) -> None:
        """Park a table; `heals`: whether it can be mirrored after it is loaded again."""
        self._park([name], reason, transaction, heals=heals)

    def hold(self, name: TableName, reason: str, transaction: int) -> None:
        """Park a table without an error, because it is being loaded: it stays parked if that is interrupted."""
        self._write({name: Parked(reason, True, transaction, time.time())})

    def release(self, name: TableName) -> None:
        """Let a table flow again, if it is parked."""
        if name in self.parked:
            table = full_name(*name)
            log.info(LogEvent.MIRROR_RELEASED, f"{table} is not parked any more", table=table)
            self._write({name: None})

    def change_types(self, types: TypeOptions, names: list[TableName], transaction: int) -> None:
        """Keep other options for types, and park the tables whose mirrors were not made with them."""
        self.types = types
        self._park(names, "it must be loaded again with the new settings of spark.types", transaction, heals=True)

    def _park(self, names: list[TableName], reason: str, transaction: int, *, heals: bool) -> None:
        for name in names:
            log.error(
                LogEvent.MIRROR_PARKED,
                f"the mirror of {full_name(*name)} is parked, because {reason}; all other tables flow",
                table=full_name(*name),
            )
        self._write(dict.fromkeys(names, Parked(reason, heals, transaction, time.time())))

    def _write(self, changed: dict[TableName, Parked | None]) -> None:
        with self._lock:
            self._states |= changed
            SINK_PARKED.set(len(self.parked))
            rows = [_row(name, parked) for name, parked in sorted(self._states.items())]
            # Java reads the rows from JSON. `createDataFrame` would need Python on each executor.
            text = literal(msgspec.json.encode(rows).decode())
            states = self._table.spark.sql(f"SELECT inline(from_json({text}, 'array<struct<{_COLUMNS}>>'))")
            settings = msgspec.json.encode(_Settings(self.types, self._followed, self.loaded)).decode()
            self._table.overwrite(states.withColumn("since", timestamp_seconds("since")), settings)


def _row(name: TableName, parked: Parked | None) -> dict[str, object]:
    row: dict[str, object] = {"schema": name[0], "table": name[1], "state": "parked" if parked else "live"}
    return row | msgspec.structs.asdict(parked) if parked else row
