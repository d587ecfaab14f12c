"""What several sections of the state of a pipeline need, read once for all of them."""

import asyncio
from types import TracebackType
from typing import Self, TypeVar

from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import read_states
from databus_core.pipeline_status.lag import PipelineLag, read_lag_of
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.table_states import TableStates

_T = TypeVar("_T")


class Reads:
    """The reads, which begin at once. Each method raises the errors of its own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._progress = asyncio.ensure_future(self._read_progress())
        self._states = asyncio.ensure_future(read_states(settings))
        self._lag = asyncio.ensure_future(self._read_lag())

    async def progress(self) -> Progress:
        """Return how far the pipeline has published."""
        return await _shared(self._progress)

    async def states(self) -> TableStates:
        """Return the backfills and the tables in doubt."""
        states, _end = await _shared(self._states)
        return states

    async def lag(self) -> PipelineLag:
        """Return how far the progress is behind the end of the binlog."""
        return await _shared(self._lag)

    async def _read_progress(self) -> Progress:
        return await read_progress(self.settings) or Progress()

    async def _read_lag(self) -> PipelineLag:
        return await read_lag_of(self.settings, await self.progress())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """End the reads that took too long."""
        reads = [self._progress, self._states, self._lag]
        for each in reads:
            each.cancel()
        await asyncio.gather(*reads, return_exceptions=True)


async def _shared(read: "asyncio.Future[_T]") -> _T:
    """Wait for a read. It goes on if this is cancelled, because other sections may wait for it."""
    return await asyncio.shield(read)
