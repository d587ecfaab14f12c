"""`databus status`: how far a pipeline is, and what needs attention; once, or again and again."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from typing import NoReturn

import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from databus_cli.status.sections import Values, lines, read_sections
from databus_core.settings import Settings, load


def run(options: argparse.Namespace) -> int:
    """Print the state. The exit code is 1 if a section cannot be read."""
    settings = load(options.config)
    if options.watch:
        asyncio.run(_watch(settings, options.interval, as_json=options.json))  # until an interrupt
    found = asyncio.run(read_sections(settings))
    sys.stdout.write(_json(settings, found) if options.json else "\n".join(lines(settings, found)) + "\n")
    return 1 if any("error" in values for values in found.values()) else 0


async def _watch(settings: Settings, interval: float, *, as_json: bool) -> NoReturn:
    """Show the state every few seconds, until an interrupt: in place on a terminal, else one after the other."""
    console = Console(markup=False, highlight=False)
    with Live(console=console, auto_refresh=False, redirect_stderr=False) as live:
        while True:
            found = await read_sections(settings)
            if as_json or not console.is_terminal:
                sys.stdout.write(_json(settings, found) if as_json else "\n".join(_dated(settings, found)) + "\n\n")
                sys.stdout.flush()
            else:
                live.update(Text("\n".join(_dated(settings, found))), refresh=True)
            await asyncio.sleep(interval)


def _dated(settings: Settings, found: dict[str, Values]) -> list[str]:
    time = datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    head, *rest = lines(settings, found)
    return [f"{head}, {time} UTC", *rest]


def _json(settings: Settings, found: dict[str, Values]) -> str:
    return msgspec.json.encode({"pipeline": settings.name, **found}).decode() + "\n"
