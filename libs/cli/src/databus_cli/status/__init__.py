"""`databus status`: how far a pipeline is, and what needs attention; once, or again and again."""

import argparse
import asyncio
import sys
from typing import NoReturn

import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from databus_cli.status.texts import lines, sections
from databus_core.pipeline_status import PipelineStatus, read_status
from databus_core.settings import Settings, load


def run(options: argparse.Namespace) -> int:
    """Print the state. The exit code is 1 if a section cannot be read."""
    settings = load(options.config)
    if options.watch:
        asyncio.run(_watch(settings, options.interval, as_json=options.json))  # until an interrupt
    status = asyncio.run(read_status(settings))
    sys.stdout.write(_json(status) if options.json else "\n".join(lines(status.pipeline, sections(status))) + "\n")
    return 1 if status.errors else 0


async def _watch(settings: Settings, interval: float, *, as_json: bool) -> NoReturn:
    """Show the state every few seconds, until an interrupt: in place on a terminal, else one after the other."""
    console = Console(markup=False, highlight=False)
    with Live(console=console, auto_refresh=False, redirect_stderr=False) as live:
        while True:
            status = await read_status(settings)
            if as_json or not console.is_terminal:
                sys.stdout.write(_json(status) if as_json else "\n".join(_dated(status)) + "\n\n")
                sys.stdout.flush()
            else:
                live.update(Text("\n".join(_dated(status))), refresh=True)
            await asyncio.sleep(interval)


def _dated(status: PipelineStatus) -> list[str]:
    time = status.time.isoformat(" ", "seconds").removesuffix("+00:00")
    head, *rest = lines(status.pipeline, sections(status))
    return [f"{head}, {time} UTC", *rest]


def _json(status: PipelineStatus) -> str:
    return msgspec.json.encode({"pipeline": status.pipeline, **sections(status)}).decode() + "\n"
