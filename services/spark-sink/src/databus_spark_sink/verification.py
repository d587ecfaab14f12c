"""Compares the mirrors with their tables in the database, one after the other, at the interval `spark.verify`."""

import asyncio

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus.errors import DatabusError
from databus.events import Table, full_name
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.metrics import SINK_VERIFY_DIFFERING, SINK_VERIFY_TIME
from databus.settings import Settings
from databus_changes.tables import TableName
from databus_spark.changelog import ChangeLog
from databus_spark.compare import Differences
from databus_spark.mirror import Mirror
from databus_spark_sink.lake import Lake
from databus_spark_sink.verify import compared

log = get_logger(__name__)


class Verification:
    """Compares in a session of its own. What differs is logged and counted, and nothing is parked for it."""

    def __init__(self, settings: Settings, spark: SparkSession, lake: Lake) -> None:
        self._settings = settings
        self._spark = spark.newSession()
        self._lake = lake

    async def run(self) -> None:
        """Compare all mirrors that are not parked."""
        for name in self._lake.tables.known:
            try:
                await self._compare(name)
            except (DatabusError, PySparkException, Py4JError) as error:
                reason = str(error) if isinstance(error, DatabusError) else type(error).__name__
                text = f"{full_name(*name)} could not be compared: {reason}"
                log.warning(LogEvent.VERIFY_FAILED, text, table=full_name(*name))

    async def _compare(self, name: TableName) -> None:
        if name in self._lake.tables.parked or not await asyncio.to_thread(self._is_mirrored, name):
            return
        layout = self._lake.layout
        async for table, found in compared(self._settings, self._spark, layout, [full_name(*name)], lambda _: None):
            _report(table, found)

    def _is_mirrored(self, name: TableName) -> bool:
        changes = ChangeLog(self._spark, self._lake.layout.changes)
        return (
            Mirror(self._spark, changes, name, self._lake.layout.mirror(*name), self._lake.types).definition is not None
        )


def _report(table: Table, found: Differences) -> None:
    SINK_VERIFY_DIFFERING.labels(table.full_name).set(found.missing + found.invented + found.different)
    SINK_VERIFY_TIME.labels(table.full_name).set_to_current_time()
    if not found.equal:
        text = f"the mirror of {table.full_name} differs from its table: {found.counts}"
        log.error(LogEvent.MIRROR_DIFFERS, text, table=table.full_name)
