"""Loads tables from new dumps while all other tables flow.

These are parked tables, those that an operator asks for, and those of patterns that were added to `spark.tables`.
"""

import asyncio
import math
import time
from contextlib import suppress
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.errors import DatabusError, FatalError, LakeUnavailable, RetryableError
from databus_core.events import first_names, full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.runtime import uninterrupted
from databus_core.settings import Settings
from databus_core.table_filter import TableFilter
from databus_spark_sink.lake import Lake
from databus_spark_sink.loads.dump_job import DumpJob
from databus_spark_sink.loads.requests import FAILED, Requests

log = get_logger(__name__)

#: pause before a dump of the same tables is taken again; each time twice as long
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0


class _Target(NamedTuple):
    """What a dump is taken of."""

    #: a table, or a pattern of `spark.tables`
    pattern: str
    #: whether the pattern was added to `spark.tables`
    is_new: bool = False


class Healing:
    """Takes one dump after the other."""

    def __init__(self, settings: Settings, spark: SparkSession, lake: Lake) -> None:
        self._settings = settings
        self._spark = spark
        self._lake = lake
        self._filter = TableFilter(settings.spark.tables)
        self._requests = Requests(spark, lake.layout)
        #: the requests that have not ended, and those that have failed
        self._requested: dict[str, TableName] = {}
        self._failed: set[str] = set()
        #: when it was looked for requests, on the monotonic clock
        self._looked = -math.inf
        #: what is being loaded, the requests for it, and its dump
        self._loading: tuple[_Target, list[str], DumpJob] | None = None
        #: when a target may be loaded again, on the monotonic clock, and the pause after that
        self._waits: dict[_Target, tuple[float, float]] = {}
        #: patterns that could not be loaded from one dump: one table may be the reason, so they are tried one by one
        self._split: set[str] = set()

    @property
    def is_pending(self) -> bool:
        """Whether tables are being loaded, or will be at once."""
        return self._loading is not None or bool(self._due())

    @property
    def degraded(self) -> str:
        """The patterns whose tables are not loaded yet, for /readyz; empty: none."""
        return f"not loaded: {first_names(self._new_patterns)}" if self._new_patterns else ""

    async def step(self) -> None:
        """Begin to fetch a dump if there are tables to be loaded; load one of its tables when it is here."""
        if self._loading is None:
            await self._look_for_requests()
            for target in self._due()[:1]:  # one by one: a dump of a table that is gone fails
                self._begin(target)
            return
        target, requests, job = self._loading
        if job.is_fetched:
            try:
                if not await uninterrupted(asyncio.to_thread(job.load_next)):
                    self._loading = None
                    await uninterrupted(asyncio.to_thread(self._end, target, requests, job))
            except (DatabusError, PySparkException, Py4JError) as error:
                self._loading = None
                await uninterrupted(asyncio.to_thread(self._fail, target, requests, job, error))

    async def close(self) -> None:
        """Stop fetching."""
        if self._loading:
            await self._loading[2].close()

    @property
    def _new_patterns(self) -> list[str]:
        return [each for each in self._settings.spark.tables if each not in self._lake.tables.loaded]

    def _due(self) -> list[_Target]:
        found = [_Target(full_name(*name)) for name in sorted(set(self._requested.values()))]
        found += [_Target(pattern, is_new=True) for pattern in self._new_patterns]
        if self._settings.spark.heal == "auto":
            found += [_Target(each) for each in self._parked()]
        due = {each: self._waits.get(each, (0.0, 0.0))[0] for each in found}
        return sorted((each for each in due if due[each] <= time.monotonic()), key=due.__getitem__)

    def _parked(self) -> list[str]:
        """Return the parked tables that can be loaded, or the pattern if these are all the tables of a pattern."""
        parked = self._lake.tables.parked.items()
        names = {name for name, each in parked if each.heals and self._filter.matches(*name)}
        found = []
        for pattern in self._settings.spark.tables:
            of_pattern = TableFilter([pattern])
            members = {name for name in self._lake.tables.known if of_pattern.matches(*name)}
            is_whole = len(members) > 1 and members <= names
            if is_whole and pattern not in self._split:  # one dump, and not one for each table
                found.append(pattern)
                names -= members
        return found + [full_name(*name) for name in sorted(names)]

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
            else:  # an operator does not wait for earlier failures
                self._waits.pop(_Target(full_name(*found[request])), None)
        self._requested = {request: name for request, name in found.items() if request not in self._failed}

    def _begin(self, target: _Target) -> None:
        named = [request for request, name in self._requested.items() if full_name(*name) == target.pattern]
        requests = [] if target.is_new else named

        def say(step: str) -> None:
            self._report(requests, step)

        log.info(LogEvent.HEALING_STARTED, f"{target.pattern} is loaded from a new dump", table=target.pattern)
        job = DumpJob(self._settings, self._spark, self._lake, target.pattern, say, is_requested=bool(requests))
        self._loading = target, requests, job

    def _end(self, target: _Target, requests: list[str], job: DumpJob) -> None:
        self._wait(target)
        self._split.discard(target.pattern)
        job.delete_files()
        if not job.is_complete:
            self._report(requests, "tried again soon, because it is in doubt again")
            return
        if target.is_new:
            self._lake.tables.set_loaded(target.pattern)
        for request, name in self._requests.list().items():
            if full_name(*name) == target.pattern and (request in requests or request in self._failed):
                self._requests.remove(request)
                self._requested.pop(request, None)

    def _fail(self, target: _Target, requests: list[str], job: DumpJob, error: Exception) -> None:
        self._wait(target)
        if not isinstance(error, RetryableError):
            self._split.add(target.pattern)
        reason = str(error) if isinstance(error, DatabusError) else type(error).__name__
        log.warning(LogEvent.HEALING_FAILED, f"{target.pattern} could not be loaded: {reason}", table=target.pattern)
        with suppress(LakeUnavailable):
            job.delete_files()
        is_final = isinstance(error, FatalError)
        self._report(requests, f"{FAILED}{reason}" if is_final else f"tried again soon, because {reason}")
        for request in requests if is_final else ():
            self._failed.add(request)
            self._requested.pop(request, None)

    def _wait(self, target: _Target) -> None:
        pause = self._waits.get(target, (0.0, _FIRST_PAUSE))[1]
        self._waits[target] = time.monotonic() + pause, min(pause * 2, _LONGEST_PAUSE)

    def _report(self, requests: list[str], text: str) -> None:
        for request in requests:
            self._requests.report(request, text)
