"""Loads parked tables again, and those that an operator asks for, from new dumps, while all other tables go on."""

import asyncio
import math
import time
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import DatabusError, DumpUnusable, FatalError
from databus.events import full_name
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.runtime import uninterrupted
from databus.settings import Settings
from databus_changes.tables import TableName
from databus_spark.dump_files import Say
from databus_spark_sink.dumps import PassedDump, load_mirrors, take
from databus_spark_sink.lake import Lake
from databus_spark_sink.requests import FAILED, Requests

log = get_logger(__name__)

#: pause before a table is loaded again that was parked again, or whose dump failed; each time twice as long
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0


class Healing:
    """Fetches dumps of tables in the background, one at a time. They are loaded between two batches."""

    def __init__(self, settings: Settings, spark: SparkSession, lake: Lake) -> None:
        self._settings = settings
        self._spark = spark
        self._lake = lake
        self._requests = Requests(spark, lake.layout)
        #: the requests that have not ended, and those that have failed
        self._requested: dict[str, TableName] = {}
        self._failed: set[str] = set()
        #: when it was looked for requests, on the monotonic clock
        self._looked = -math.inf
        #: the table whose dump is being fetched, its requests, and the dump
        self._fetching: tuple[TableName, list[str], asyncio.Task[PassedDump]] | None = None
        #: table → when it may be loaded again, on the monotonic clock, and the pause after that
        self._waits: dict[TableName, tuple[float, float]] = {}

    @property
    def is_pending(self) -> bool:
        """Whether tables are being loaded, or will be at once."""
        return self._fetching is not None or bool(self._due())

    async def step(self) -> None:
        """Begin to fetch a dump if a table is to be loaded; load it when it is here."""
        if self._fetching is None:
            await self._look_for_requests()
            for name in self._due()[:1]:  # one by one: a dump of a table that is gone fails
                pause = self._waits.get(name, (0.0, _FIRST_PAUSE))[1]
                self._waits[name] = time.monotonic() + pause, min(pause * 2, _LONGEST_PAUSE)
                requests = [request for request, table in self._requested.items() if table == name]
                self._fetching = name, requests, asyncio.create_task(self._fetch(name, requests))
        elif self._fetching[2].done():
            (name, requests, task), self._fetching = self._fetching, None
            try:
                await uninterrupted(asyncio.to_thread(self._load, name, requests, task.result()))
            except (DatabusError, PySparkException, Py4JError) as error:
                reason = str(error) if isinstance(error, DatabusError) else type(error).__name__
                log.warning(LogEvent.HEALING_FAILED, f"{full_name(*name)} could not be loaded again: {reason}")
                self._report_failure(requests, reason, final=isinstance(error, FatalError))

    async def _look_for_requests(self) -> None:
        if time.monotonic() < self._looked + self._settings.spark.trigger:
            return
        self._looked = time.monotonic()
        await asyncio.to_thread(self._read_requests)

    def _read_requests(self) -> None:
        found = self._requests.list()
        for request in found.keys() - self._requested.keys() - self._failed:
            if (self._requests.text(request) or "").startswith(FAILED):
                self._failed.add(request)
            else:
                self._waits.pop(found[request], None)  # an operator does not wait for earlier failures
        self._requested = {request: name for request, name in found.items() if request not in self._failed}

    def _load(self, name: TableName, requests: list[str], dump: PassedDump) -> None:
        """Load a dump, unless the doubt has ended meanwhile, or there is one that may be newer than the dump."""
        parked = self._lake.tables.parked.get(name)
        is_newer = parked is not None and parked.transaction > dump.transaction
        if is_newer or (parked is None and not requests):
            dump.folder.delete()
            return
        if not any(table.primary_key for table in dump.tables):
            dump.folder.delete()
            reason = "has no primary key, or does not match spark.tables any more"
            if parked:
                self._lake.tables.park(name, f"it {reason}", parked.transaction, heals=False)
            raise DumpUnusable(f"{full_name(*name)} {reason}")
        if parked is None:  # the mirror goes back to the dump: the table must be loaded again if we are killed then
            self._lake.tables.hold(name, "an operator has it loaded again", dump.transaction)
        load_mirrors(self._spark, self._lake, dump)
        self._lake.catch_up()
        for request, table in self._requests.list().items():
            if table == name and (request in requests or request in self._failed):
                self._requests.remove(request)
                self._requested.pop(request, None)

    async def close(self) -> None:
        """Stop fetching."""
        if self._fetching:
            task = self._fetching[2]
            task.cancel()
            with suppress(asyncio.CancelledError, DatabusError):
                await task

    def _due(self) -> list[TableName]:
        names = sorted(set(self._requested.values()))
        if self._settings.spark.heal == "auto":
            names += sorted(name for name, each in self._lake.tables.parked.items() if each.heals)
        return [name for name in names if self._waits.get(name, (0.0, 0.0))[0] <= time.monotonic()]

    async def _fetch(self, name: TableName, requests: list[str]) -> PassedDump:
        table = full_name(*name)
        log.info(LogEvent.HEALING_STARTED, f"{table} is loaded again from a new dump", table=table)
        say = self._reporter(requests)
        say("waiting until dump-api has taken a dump")
        async with DumpApi(self._settings.dumps.url) as api:
            return await take(self._settings, say, api, [table], self._lake.downloads)

    def _reporter(self, requests: list[str]) -> Say:
        def say(step: str) -> None:
            for request in requests:
                self._requests.report(request, step)

        return say

    def _report_failure(self, requests: list[str], reason: str, *, final: bool) -> None:
        self._reporter(requests)(f"{FAILED}{reason}" if final else f"tried again soon, because {reason}")
        for request in requests if final else ():
            self._failed.add(request)
            self._requested.pop(request, None)
