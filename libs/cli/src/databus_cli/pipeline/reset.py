"""`databus pipeline reset`: make a pipeline continue at another position."""

import argparse

from databus_cli.pipeline.target import Target, distance, resolve_target
from databus_cli.positions import described
from databus_cli.terminal import confirmed, notice
from databus_core import pipeline_state
from databus_core.errors import ProgressCorrupt
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress
from databus_core.redis_connection import connect_redis
from databus_core.settings import Settings


async def reset(settings: Settings, options: argparse.Namespace) -> int:
    """Show where the pipeline is and where it will continue, ask for confirmation, and reset it."""
    target = None
    async with connect_redis(settings.redis) as redis:
        # A reader that is active would be disconnected: to resolve a position, its id as a replica is used.
        async with pipeline_state.services_stopped(settings, redis):
            published = await _published(settings)
            if options.to:
                target = await resolve_target(settings, redis, options.to)
        if target and published:
            notice(distance(target, published))
        if not (options.yes or confirmed(_question(settings, target))):
            notice("nothing was changed")
            return 1
        await pipeline_state.reset(settings, redis, target.progress if target else None)
    notice(f"reset; when reader and publisher start, the pipeline begins at {_destination(settings, target)}")
    return 0


async def _published(settings: Settings) -> Progress | None:
    """Read how far the pipeline has published, and show it. Returns None if it is not known."""
    try:
        progress = await read_progress(settings)
    except ProgressCorrupt as error:
        notice(f"pipeline {settings.name} has a damaged progress ({error})")
        return None
    if progress is None or progress.position is None:
        notice(f"pipeline {settings.name} has no progress")
        return None
    at = described(progress.position)
    notice(f"pipeline {settings.name} has published everything before {at}")
    return progress


def _question(settings: Settings, target: Target | None) -> str:
    return f"Make pipeline {settings.name} begin at {_destination(settings, target)}?"


def _destination(settings: Settings, target: Target | None) -> str:
    if target is None or target.progress.position is None:
        return f"reader.start={settings.reader.start}"
    loads = ", and loads all captured tables" if target.progress.snapshot else ""
    return f"{described(target.progress.position)} of {target.host}{loads}"
