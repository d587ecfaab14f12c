"""`databus pipeline reset`: make a pipeline begin again at `reader.start`."""

import argparse
import asyncio
import sys

from databus.errors import InvalidSettings, ProgressCorrupt
from databus.kafka_progress import read_progress
from databus.pipeline_state import reset
from databus.redis_connection import connect_redis
from databus.settings import Settings, load
from databus_cli.terminal import notice


def run(options: argparse.Namespace) -> int:
    """Show the progress that is given up, ask for confirmation, and reset the pipeline."""
    return asyncio.run(_run(load(options.config), confirmed=options.yes))


async def _run(settings: Settings, *, confirmed: bool) -> int:
    notice(f"pipeline {settings.name} {await _published(settings)}")
    if not (confirmed or _confirmed(settings)):
        notice("nothing was changed")
        return 1
    async with connect_redis(settings.redis) as redis:
        await reset(settings, redis)
    notice(f"reset; when reader and publisher start, the pipeline begins at reader.start={settings.reader.start}")
    return 0


async def _published(settings: Settings) -> str:
    """Describe how far the pipeline has published."""
    try:
        progress = await read_progress(settings)
    except ProgressCorrupt as error:
        return f"has a damaged progress ({error})"
    if progress is None or progress.position is None:
        return "has no progress"
    at = progress.position
    places = [f"{at.file}:{at.offset}"] if at.file else []
    places += [f"gtid:{at.gtid_set}"] if at.gtid_set else []
    return f"has published everything before {' = '.join(places)}; with that as reader.start it would continue there"


def _confirmed(settings: Settings) -> bool:
    if not sys.stdin.isatty():
        raise InvalidSettings("the reset gives up the pipeline's progress: confirm it with --yes")
    return input(f"Changes after that, up to reader.start, are never published. Reset {settings.name}? [y/N] ") == "y"
