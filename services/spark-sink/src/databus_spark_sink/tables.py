"""The states of the lake's tables: which follow their sources, and which are parked, since when and why."""

import time
from datetime import UTC, datetime
from threading import Lock

import msgspec
from pyspark.sql import SparkSession

from databus.events import full_name
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.metrics import SINK_PARKED
from databus_spark import delta
from databus_spark.changelog import TableName

log = get_logger(__name__)

_COLUMNS = "schema string, table string, state string, reason string, transaction bigint, since timestamp"


class Parked(msgspec.Struct, frozen=True):
    """Why a mirror does not follow its table any more."""

    reason: str
    #: ordinal of the last transaction that the mirror may have
    transaction: int
    #: in seconds since the epoch
    since: float


class TableStates:
    """The parked tables, as the lake's table of states has them."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._table = delta.Table(spark, path)
        self._lock = Lock()
        self.parked: dict[TableName, Parked] = {}
        if self._table.exists:
            for row in self._table.read().where("state = 'parked'").collect():
                since = row.since.timestamp()
                self.parked[row.schema, row.table] = Parked(row.reason, row.transaction, since)
        SINK_PARKED.set(len(self.parked))

    def park(self, name: TableName, reason: str, transaction: int) -> None:
        """Park a table."""
        log.error(
            LogEvent.MIRROR_PARKED,
            f"the mirror of {full_name(*name)} is parked, because {reason}; all other tables go on",
            table=full_name(*name),
        )
        with self._lock:
            self.parked[name] = Parked(reason, transaction, time.time())
            self._write()

    def release(self, name: TableName) -> None:
        """Let a table go on, if it is parked."""
        with self._lock:
            if self.parked.pop(name, None):
                log.info(LogEvent.MIRROR_RELEASED, f"the mirror of {full_name(*name)} goes on", table=full_name(*name))
                self._write()

    def _write(self) -> None:
        SINK_PARKED.set(len(self.parked))
        rows = [
            (schema, table, "parked", each.reason, each.transaction, datetime.fromtimestamp(each.since, UTC))
            for (schema, table), each in self.parked.items()
        ]
        self._table.overwrite(self._table.spark.createDataFrame(rows, _COLUMNS), "")
