"""The lake's table of records that could not be used. It follows the change log, which has them, too."""

import msgspec
from pyspark.sql import SparkSession

from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import sink as metrics
from databus_spark.changelog import ChangeLog, LogState
from databus_spark.formats import open_table
from databus_spark.sequences import between

log = get_logger(__name__)


class Quarantine:
    """Copies unusable records from the change log."""

    def __init__(self, spark: SparkSession, changes: ChangeLog, path: str) -> None:
        self._changes = changes
        self._table = open_table(spark, path)
        text = self._table.text() if self._table.exists else ""
        # Without a text, which upkeep by another program may have deleted, records are copied once more.
        self._done = msgspec.json.decode(text, type=LogState).transaction if text else -1

    def follow(self, last: int) -> None:
        """Add what the change log has up to a transaction."""
        if last <= self._done:
            return
        invalid = self._changes.read(self._done).where(f"_action = 'invalid' and {between(self._done, last)}")
        rows = invalid.selectExpr(
            "_topic as topic",
            "_partition as partition",
            "_offset as offset",
            "_time as time",
            "_schema as schema",
            "_table as table",
            "_query as reason",
            "cells[0] as key",
            "cells[1] as value",
        )
        count = rows.count()
        state = msgspec.json.encode(LogState(last)).decode()
        self._table.append(rows, state, f"after-{self._done}")
        self._done = last
        metrics.QUARANTINED.inc(count)
        log.warning(
            LogEvent.RECORDS_QUARANTINED, f"records could not be used and are in {self._table.path}", rows=count
        )
