"""The upkeep of the lake by the sink itself, at the interval `spark.maintain.interval`."""

import asyncio
from collections.abc import Callable
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_core.errors import LakeUnavailable
from databus_core.events import full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.runtime import uninterrupted
from databus_core.settings import Settings
from databus_spark_sink.lake import Lake
from databus_spark_sink.upkeep.work import Upkeep

log = get_logger(__name__)


class Maintenance:
    """Does what conflicts with a batch between two batches, one thing each time, and everything else beside them."""

    def __init__(self, settings: Settings, spark: SparkSession, lake: Lake) -> None:
        self._lake = lake
        self._upkeep = Upkeep(spark, lake.layout, settings.spark.maintain)
        #: what is to be done between batches
        self._between: list[Callable[[], None]] = []

    async def run(self) -> None:
        """Do what is possible beside batches; the next steps do the rest."""
        layout, upkeep = self._lake.layout, self._upkeep
        mirrors = {full_name(*name): layout.mirror(*name) for name in self._lake.tables.known}
        tables = [layout.changes, layout.tables, layout.quarantine, *mirrors.values()]
        self._between = [
            upkeep.trim,
            *(partial(upkeep.compact, name, path) for name, path in mirrors.items()),
            *(partial(upkeep.keep_history, path) for path in tables),
        ]
        await asyncio.to_thread(_attempt, upkeep.sweep)
        await asyncio.to_thread(_attempt, partial(upkeep.compact, "change log", layout.changes))
        for path in tables:
            await asyncio.to_thread(_attempt, partial(upkeep.vacuum, path))

    async def step(self) -> None:
        """Do one thing between two batches."""
        if self._between:
            await uninterrupted(asyncio.to_thread(_attempt, self._between.pop(0)))


def _attempt(work: Callable[[], None]) -> None:
    try:
        work()
    except (LakeUnavailable, PySparkException, Py4JError) as error:
        log.warning(LogEvent.UPKEEP_FAILED, f"a part of the lake could not be maintained: {type(error).__name__}")
