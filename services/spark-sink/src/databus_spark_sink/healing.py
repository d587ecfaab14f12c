"""Loads parked tables again, each from a new dump of it, while all other tables go on."""

import asyncio
import time
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import DatabusError
from databus.events import full_name
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.runtime import uninterrupted
from databus.settings import Settings
from databus_spark.changelog import TableName
from databus_spark_sink.dumps import PassedDump, load_mirrors, take
from databus_spark_sink.lake import Lake

log = get_logger(__name__)

#: pause before a table is loaded again that was parked again, or whose dump failed; each time twice as long
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0


class Healing:
    """Fetches dumps of parked tables in the background, one at a time. They are loaded between two batches."""

    def __init__(self, settings: Settings, spark: SparkSession, lake: Lake) -> None:
        self._settings = settings
        self._spark = spark
        self._lake = lake
        #: the dump that is being fetched
        self._fetching: asyncio.Task[PassedDump] | None = None
        #: table → when it may be loaded again, on the monotonic clock, and the pause after that
        self._waits: dict[TableName, tuple[float, float]] = {}

    @property
    def is_pending(self) -> bool:
        """Whether tables are being loaded, or will be at once."""
        return self._fetching is not None or bool(self._due())

    async def step(self) -> None:
        """Begin to fetch a dump if a table is parked; load it when it is here."""
        if self._fetching is None:
            for name in self._due()[:1]:  # one by one: a dump of a table that is gone fails
                pause = self._waits.get(name, (0.0, _FIRST_PAUSE))[1]
                self._waits[name] = time.monotonic() + pause, min(pause * 2, _LONGEST_PAUSE)
                self._fetching = asyncio.create_task(self._fetch(name))
        elif self._fetching.done():
            task, self._fetching = self._fetching, None
            try:
                await uninterrupted(asyncio.to_thread(self._load, task.result()))
            except (DatabusError, PySparkException, Py4JError) as error:
                reason = str(error) if isinstance(error, DatabusError) else type(error).__name__
                log.warning(
                    LogEvent.HEALING_FAILED, f"a parked table could not be loaded, and is tried again: {reason}"
                )

    def _load(self, dump: PassedDump) -> None:
        """Load a dump, unless the doubt has ended meanwhile, or there is one that may be newer than the dump."""
        parked = self._lake.tables.parked
        names = [(table.schema, table.name) for table in dump.tables]
        if all(name in parked and parked[name].transaction <= dump.transaction for name in names):
            load_mirrors(self._spark, self._lake, dump)
            self._lake.catch_up()
        else:
            dump.folder.delete()

    async def close(self) -> None:
        """Stop fetching."""
        if self._fetching:
            self._fetching.cancel()
            with suppress(asyncio.CancelledError, DatabusError):
                await self._fetching

    def _due(self) -> list[TableName]:
        if self._settings.spark.heal == "manual":
            return []
        parked = sorted(name for name, each in self._lake.tables.parked.items() if each.heals)
        return [name for name in parked if self._waits.get(name, (0.0, 0.0))[0] <= time.monotonic()]

    async def _fetch(self, name: TableName) -> PassedDump:
        table = full_name(*name)
        log.info(LogEvent.HEALING_STARTED, f"{table} is loaded again from a new dump", table=table)
        async with DumpApi(self._settings.dumps.url) as api:
            return await take(self._settings, log_nothing, api, [table], self._lake.downloads)


def log_nothing(_: str) -> None:
    """Do nothing: healing changes nothing in what the service reports as its step."""
