"""Compares the mirrors with their tables in the database at the interval `spark.verify`."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_core.errors import DatabusError
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import sink as metrics
from databus_core.settings import Settings
from databus_spark_sink.compare.verdicts import Verdict, reason_of
from databus_spark_sink.compare.verify import judged
from databus_spark_sink.lake import Lake

log = get_logger(__name__)


class Verification:
    """Compares in a session of its own. What differs is logged and counted, and nothing is parked for it."""

    def __init__(self, settings: Settings, spark: SparkSession, lake: Lake) -> None:
        self._settings = settings
        self._spark = spark.newSession()
        self._lake = lake
        #: full names of the tables that have metrics
        self._measured: set[str] = set()

    async def run(self) -> None:
        """Compare all mirrors that are not parked, with one dump."""
        tables, found = self._settings.spark.tables, set[str]()
        try:
            async for verdict in judged(self._settings, self._spark, self._lake.layout, tables, lambda _: None):
                found.add(verdict.table)
                _report(verdict)
        except (DatabusError, PySparkException, Py4JError) as error:
            log.warning(LogEvent.VERIFY_FAILED, f"the lake could not be compared: {reason_of(error)}")
            return
        for table in self._measured - found:  # neither the database nor the lake has it any more
            metrics.VERIFY_DIFFERING.remove(table)
            metrics.VERIFY_TIME.remove(table)
        self._measured = found


def _report(verdict: Verdict) -> None:
    if verdict.error:
        log.warning(LogEvent.VERIFY_FAILED, f"{verdict.table} {verdict.text}", table=verdict.table)
    if verdict.differing is None:  # for instance parked
        return
    metrics.VERIFY_DIFFERING.labels(verdict.table).set(verdict.differing)
    metrics.VERIFY_TIME.labels(verdict.table).set_to_current_time()
    if not verdict.is_equal:
        log.error(LogEvent.MIRROR_DIFFERS, f"{verdict.table}: {verdict.text}", table=verdict.table)
