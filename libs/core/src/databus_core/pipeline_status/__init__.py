"""The state of a pipeline: how far it is, and what needs attention. `databus status` and dump-api show it.

The sections are read at the same time, and one that cannot be read hides no other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec

from databus_core.backfill_status import BackfillStatus
from databus_core.errors import DatabusError
from databus_core.pipeline_status import positions, requests, services
from databus_core.pipeline_status.freshness import Freshness, read_freshness
from databus_core.pipeline_status.lag import PipelineLag
from databus_core.pipeline_status.positions import PipelinePosition
from databus_core.pipeline_status.reads import Reads
from databus_core.pipeline_status.requests import DeadLetterCount, SkippedTransactions, TableInDoubt
from databus_core.pipeline_status.services import SourceHost, StreamBacklog
from databus_core.settings import Settings


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a pipeline is, and what needs attention. A section that could not be read is null."""

    #: name of the pipeline
    pipeline: str
    #: when it was read
    time: datetime
    lag: PipelineLag | None
    #: stage → how old the data there is, in seconds: everything committed before that has passed the stage. A value
    #: that is not known is null.
    freshness: Freshness | None
    progress: PipelinePosition | None
    source: SourceHost | None
    #: `reader` and `publisher` → the active process; null: there is none
    leaders: dict[str, str | None] | None
    stream: StreamBacklog | None
    skips: SkippedTransactions | None
    #: tables whose rows in Kafka may differ from those in the database, by name
    tables_in_doubt: list[TableInDoubt] | None
    #: those that have not ended, the oldest request first
    backfills: list[BackfillStatus] | None
    #: the latest five that have ended, the newest request first
    ended_backfills: list[BackfillStatus] | None
    dead_letters: DeadLetterCount | None
    #: section → why it could not be read
    errors: dict[str, str]


#: each section of `PipelineStatus`, and how it is read
_SECTIONS: dict[str, Callable[[Reads], Awaitable[object]]] = {
    "lag": Reads.lag,
    "freshness": read_freshness,
    "progress": positions.read_position,
    "source": services.read_host,
    "leaders": services.read_leaders,
    "stream": services.read_stream,
    "skips": requests.read_skips,
    "tables_in_doubt": requests.read_doubts,
    "backfills": requests.read_backfills,
    "ended_backfills": requests.read_ended_backfills,
    "dead_letters": requests.read_dead_letters,
}


async def read_status(settings: Settings, seconds: float | None = None) -> PipelineStatus:
    """Read all sections. One that takes longer than `seconds` counts as one that cannot be read."""
    time = datetime.now(UTC)
    errors: dict[str, str] = {}

    async def read(name: str) -> object:
        try:
            async with asyncio.timeout(seconds):
                return await _SECTIONS[name](reads)
        except TimeoutError:
            errors[name] = f"no answer within {seconds:g} s"
        except DatabusError as error:
            errors[name] = str(error)
        return None

    async with Reads(settings) as reads:
        found = await asyncio.gather(*map(read, _SECTIONS))
    sections = dict(zip(_SECTIONS, found, strict=True))
    return PipelineStatus(pipeline=settings.name, time=time, errors=errors, **sections)  # type: ignore[arg-type]
