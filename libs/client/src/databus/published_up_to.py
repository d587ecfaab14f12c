"""Wait until the pipeline has published what a start has."""

import asyncio
from collections.abc import Callable

from databus.source import Source
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.progress import Progress

log = get_logger(__name__)

_PAUSE_SECONDS = 0.5


async def wait_until_published(source: Source, missing: Callable[[Progress], object]) -> Progress:
    """Return the first progress with a position of which `missing` returns nothing that is published later."""
    is_waiting = False
    while True:
        progress = await read_progress(source.settings)
        if progress and progress.position:
            if not (rest := missing(progress)):
                return progress
            if not is_waiting:
                is_waiting = True
                text = f"waiting until the pipeline has published {rest}, which is before the start"
                log.info(LogEvent.BOOTSTRAP_WAITING, text)
        await asyncio.sleep(_PAUSE_SECONDS)
