"""What bounds readers of tables: rows per second, and the lag of the database's replicas."""

import asyncio
import time
from collections.abc import Sequence

from databus_core.errors import FatalError, SourceUnavailable
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.settings import Source
from databus_core.source_connection import connect_source

log = get_logger(__name__)

_CHECK_SECONDS = 5.0


class ReadLimits:
    """Shared by all sessions that read rows for one purpose, the settings of which are in `section`.

    rows_per_second: None: no limit. replica_lag: seconds that a replica among the source's hosts may be behind; 0: the
    replicas do not matter.
    """

    def __init__(self, source: Source, section: str, *, rows_per_second: int | None, replica_lag: float) -> None:
        self._source = source
        self._section = section
        self._max_lag = replica_lag
        self.rows_per_second = rows_per_second
        #: hosts whose lag the account may not ask for
        self._refused: set[str] = set()
        #: earliest time of the next read, on the monotonic clock
        self._busy_until = 0.0
        self._may_read = asyncio.Event()
        self._is_behind = False
        #: set while rows are to be read: only then the replicas are checked
        self._asked = asyncio.Event()
        if not self._checks_replicas:
            self._may_read.set()

    async def wait(self) -> None:
        """Wait until the next rows may be read."""
        self._asked.set()
        await self._may_read.wait()
        await asyncio.sleep(max(0.0, self._busy_until - time.monotonic()))

    def count(self, rows: int) -> None:
        """Count rows that were read."""
        if self.rows_per_second:
            self._busy_until = max(self._busy_until, time.monotonic()) + rows / self.rows_per_second

    async def watch(self) -> None:
        """Check the replicas among the source's hosts, for ever; let readers wait while one is too far behind."""
        while self._checks_replicas:
            await self._asked.wait()
            await self._check(self._source.hosts)
            if self._may_read.is_set():
                self._asked.clear()
            await asyncio.sleep(_CHECK_SECONDS)

    @property
    def _checks_replicas(self) -> bool:
        return self._max_lag > 0 and len(self._source.hosts) > 1

    async def _check(self, hosts: Sequence[str]) -> None:
        lags = {host: await self._lag(host) for host in hosts}
        behind = [f"{host} is {lag:g} s behind" for host, lag in lags.items() if lag > self._max_lag]
        if behind and not self._is_behind:
            text = f"reading waits, because of {self._section}.replica_lag: {', '.join(behind)}"
            log.warning(LogEvent.READING_WAITS, text)
        self._is_behind = bool(behind)
        if behind:
            self._may_read.clear()
        else:
            self._may_read.set()

    async def _lag(self, host: str) -> float:
        """Return how far a host is behind as a replica, in seconds; 0 if it is none, is away, or may not be asked."""
        try:
            async with connect_source(self._source, host) as session:
                return await session.replica_lag()
        except SourceUnavailable:
            return 0.0
        except FatalError as error:
            if host not in self._refused:
                self._refused.add(host)
                log.warning(LogEvent.READING_WAITS, f"{self._section}.replica_lag has no effect: {error}", host=host)
            return 0.0
