"""Loads parked tables again, each from a new dump of it, while all other tables go on."""

import asyncio
import time
from contextlib import suppress

from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import DatabusError
from databus.events import first_names, full_name
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.settings import Settings
from databus_spark.changelog import TableName
from databus_spark_sink.dumps import FetchedDump, fetch, load_mirrors
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
        #: the dump that is being fetched, and the last transaction that was certainly committed before it
        self._fetching: tuple[asyncio.Task[FetchedDump], int] | None = None
        #: table → when it may be loaded again, on the monotonic clock, and the pause after that
        self._waits: dict[TableName, tuple[float, float]] = {}

    @property
    def is_pending(self) -> bool:
        """Whether tables are being loaded, or will be at once."""
        return self._fetching is not None or bool(self._due())

    async def step(self) -> None:
        """Begin to fetch a dump if a table is parked; load it when it is here."""
        if self._fetching is None:
            if names := self._due():
                for name in names:
                    pause = self._waits.get(name, (0.0, _FIRST_PAUSE))[1]
                    self._waits[name] = time.monotonic() + pause, min(pause * 2, _LONGEST_PAUSE)
                task = asyncio.create_task(self._fetch(names))
                self._fetching = task, self._lake.state.transaction
        elif self._fetching[0].done():
            task, transaction = self._fetching
            self._fetching = None
            try:
                await asyncio.to_thread(load_mirrors, self._spark, log_nothing, self._lake, task.result(), transaction)
            except DatabusError as error:
                log.warning(LogEvent.HEALING_FAILED, f"parked tables could not be loaded, and are tried again: {error}")
            else:
                await asyncio.to_thread(self._lake.catch_up)

    async def close(self) -> None:
        """Stop fetching."""
        if self._fetching:
            self._fetching[0].cancel()
            with suppress(asyncio.CancelledError, DatabusError):
                await self._fetching[0]

    def _due(self) -> list[TableName]:
        if self._settings.spark.heal == "manual":
            return []
        parked = sorted(name for name, each in self._lake.tables.parked.items() if each.heals)
        return [name for name in parked if self._waits.get(name, (0.0, 0.0))[0] <= time.monotonic()]

    async def _fetch(self, names: list[TableName]) -> FetchedDump:
        tables = [full_name(*name) for name in names]
        log.info(LogEvent.HEALING_STARTED, f"parked tables are loaded from a new dump: {first_names(tables)}")
        async with DumpApi(self._settings.dumps.url) as api:
            manifest = await api.take(tables)
            return await fetch(self._settings, log_nothing, api, manifest, self._lake.layout)


def log_nothing(_: str) -> None:
    """Do nothing: healing changes nothing in what the service reports as its step."""
