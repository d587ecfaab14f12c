"""What bounds backfills: rows per second, the lag of the database's replicas, and what waits to be published."""

import asyncio
import time
from collections.abc import Sequence

from databus_core.errors import FatalError, SourceUnavailable
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.pipe import ReaderEnd
from databus_core.settings import Settings
from databus_core.source_connection import connect_source

log = get_logger(__name__)

_CHECK_SECONDS = 5.0
#: the largest part of a second's rows that one chunk may have
_PART = 0.25
#: No chunk is read while more than this waits in Redis to be published: changes would wait behind the chunks.
_BACKLOG_BYTES = 2**16
_BACKLOG_SECONDS = 0.002


class Limits:
    """Shared by all backfills of a generation."""

    def __init__(self, settings: Settings, pipe: ReaderEnd) -> None:
        self._settings = settings
        #: hosts whose lag the account may not ask for
        self._refused: set[str] = set()
        self._pipe = pipe
        self._max_lag = settings.backfill.replica_lag
        self._rows_per_second = settings.backfill.rows_per_second
        #: earliest time of the next read, on the monotonic clock
        self._busy_until = 0.0
        self._may_read = asyncio.Event()
        self._is_behind = False
        #: set while a chunk is to be read: only then the replicas are checked
        self._asked = asyncio.Event()
        if len(settings.source.hosts) == 1:
            self._may_read.set()

    @property
    def chunk_rows(self) -> int:
        """The largest number of rows of a chunk."""
        return max(1, int(self._rows_per_second * _PART)) if self._rows_per_second else 2**31

    async def wait(self) -> None:
        """Wait until the next chunk may be read. Raises GenerationLost, and RedisUnavailable."""
        self._asked.set()
        await self._may_read.wait()
        await asyncio.sleep(max(0.0, self._busy_until - time.monotonic()))
        while await self._pipe.backlog() > _BACKLOG_BYTES:  # noqa: ASYNC110 - only Redis knows when that changes
            await asyncio.sleep(_BACKLOG_SECONDS)

    def count(self, rows: int) -> None:
        """Count rows that were read."""
        if self._rows_per_second:
            self._busy_until = max(self._busy_until, time.monotonic()) + rows / self._rows_per_second

    async def watch(self) -> None:
        """Check the replicas among the source's hosts, for ever; let backfills wait while one is too far behind."""
        hosts = self._settings.source.hosts
        while len(hosts) > 1:
            await self._asked.wait()
            await self._check(hosts)
            if self._may_read.is_set():
                self._asked.clear()
            await asyncio.sleep(_CHECK_SECONDS)

    async def _check(self, hosts: Sequence[str]) -> None:
        lags = {host: await self._lag(host) for host in hosts}
        behind = [f"{host} is {lag:g} s behind" for host, lag in lags.items() if lag > self._max_lag]
        if behind and not self._is_behind:
            text = f"backfills wait, because of backfill.replica_lag: {', '.join(behind)}"
            log.warning(LogEvent.BACKFILL_WAITS, text)
        self._is_behind = bool(behind)
        if behind:
            self._may_read.clear()
        else:
            self._may_read.set()

    async def _lag(self, host: str) -> float:
        """Return how far a host is behind as a replica, in seconds; 0 if it is none, is away, or may not be asked."""
        try:
            async with connect_source(self._settings.source, host) as session:
                return await session.replica_lag()
        except SourceUnavailable:
            return 0.0
        except FatalError as error:
            if host not in self._refused:
                self._refused.add(host)
                text = f"backfill.replica_lag has no effect: {error}"
                log.warning(LogEvent.BACKFILL_WAITS, text, host=host)
            return 0.0
