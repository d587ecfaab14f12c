"""What bounds backfills: rows per second, the lag of the database's replicas, and what waits to be published."""

import asyncio

from databus_changes.snapshot.limits import ReadLimits
from databus_core.pipe import ReaderEnd
from databus_core.settings import Settings

#: the largest part of a second's rows that one chunk may have
_PART = 0.25
#: No chunk is read while more than this waits in Redis to be published: changes would wait behind the chunks.
_BACKLOG_BYTES = 2**16
_BACKLOG_SECONDS = 0.002


class Limits(ReadLimits):
    """Shared by all backfills of a generation."""

    def __init__(self, settings: Settings, pipe: ReaderEnd) -> None:
        chosen = settings.backfill
        super().__init__(
            settings.source,
            "backfill",
            rows_per_second=chosen.rows_per_second,
            replica_lag=chosen.replica_lag,
        )
        self._pipe = pipe

    @property
    def chunk_rows(self) -> int:
        """The largest number of rows of a chunk."""
        return max(1, int(self.rows_per_second * _PART)) if self.rows_per_second else 2**31

    async def wait(self) -> None:
        """Wait until the next chunk may be read. Raises GenerationLost, and RedisUnavailable."""
        await super().wait()
        while await self._pipe.backlog() > _BACKLOG_BYTES:  # noqa: ASYNC110 - only Redis knows when that changes
            await asyncio.sleep(_BACKLOG_SECONDS)
