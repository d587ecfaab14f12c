"""A section of the state of a pipeline: its position."""

import msgspec

from databus_binlog import Position
from databus_binlog.times import time_text
from databus_core.pipeline_status.reads import Reads
from databus_core.progress import Progress
from databus_core.settings import Settings


class PipelinePosition(msgspec.Struct, frozen=True, kw_only=True):
    """Up to where everything is published."""

    #: where a pipeline that has not begun will begin; null: it has begun
    begins_at: str | None
    file: str | None
    offset: int | None
    gtid_set: str | None
    #: ordinal of the last published transaction, or of a reset after it
    transaction: int
    #: commit time of the last transaction before the position
    time: str | None
    #: identity of the server that wrote the file
    server: str | None


async def read_position(reads: Reads) -> PipelinePosition:
    """Return how far the pipeline has published or, if it has not begun, where it will begin."""
    progress = await reads.progress()
    position = progress.position or progress.start or Position()
    return PipelinePosition(
        begins_at=None if progress.position else _beginning(reads.settings, progress),
        file=position.file or None,
        offset=position.offset if position.file else None,
        gtid_set=position.gtid_set or None,
        transaction=progress.transaction,
        time=time_text(progress.time_us) if progress.time_us else None,
        server=progress.server or None,
    )


def _beginning(settings: Settings, progress: Progress) -> str:
    if progress.start is None:
        return str(settings.reader.start)
    return "this position, with a snapshot" if progress.snapshot else "this position"
