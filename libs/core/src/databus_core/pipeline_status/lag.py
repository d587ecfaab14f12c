"""A section of the state of a pipeline: how far its position is behind the binlog."""

import msgspec

from databus_core.pipeline_host import connect_pipeline_host
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.source_log import read_lag


class PipelineLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far the published position is behind the end of the binlog."""

    #: since the commit of the last transaction before the position; 0 if no later one is in the binlog
    seconds: float | None
    #: bytes of the binlog; null if the position is one of another server
    bytes: int | None


async def read_lag_of(settings: Settings, progress: Progress) -> PipelineLag:
    """Compare the progress with the end of the binlog of the host that the pipeline reads."""
    async with connect_pipeline_host(settings.source, progress) as (_, session):
        lag = await read_lag(session, progress)
    return PipelineLag(seconds=None if lag.seconds is None else round(lag.seconds, 3), bytes=lag.bytes)
