"""`databus deadletter`: show changes that could not be published, publish them once it is possible, or give up."""

import argparse
import asyncio
import sys

import msgspec
from rich.console import Console
from rich.table import Table

from databus_cli.deadletter.discard import discard
from databus_cli.deadletter.replay import open_replay
from databus_cli.selection import Selection
from databus_cli.terminal import confirmed, notice, record_progress
from databus_core.events import first_names
from databus_core.kafka_dead_letters import Letter, open_letters
from databus_core.settings import Settings, load


def run(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    settings = load(options.config)
    return await _ACTIONS[options.action](settings, options)


async def _list(settings: Settings, options: argparse.Namespace) -> int:
    async with open_letters(settings) as letters:
        found = await letters.pending()
    if options.json:
        sys.stdout.buffer.writelines(msgspec.json.encode(letter.summary) + b"\n" for letter in found)
    elif found:
        Console(width=None if sys.stdout.isatty() else 200, markup=False).print(_table(found))
    else:
        notice("no dead letters")
    return 0


def _table(found: list[Letter]) -> Table:
    table = Table("commit", "table", "action", "position", "row", "bytes", "value", "error", box=None, pad_edge=False)
    for letter in found:
        about = letter.about
        value = "kept" if letter.has_value else "not kept"
        position = f"{about.file}:{about.start}"
        table.add_row(
            letter.time, about.table_name, about.action, position, f"{about.row}", f"{about.size:,}", value, about.error
        )
    return table


async def _replay(settings: Settings, options: argparse.Namespace) -> int:
    async with open_letters(settings) as letters:
        found = await letters.pending()
        async with open_replay(settings, options.to) as replay:
            replayed = 0
            missing = {letter.offset: letter for letter in found}
            with record_progress(len(found)) as advance:
                async for letter, value in letters.values(found):
                    del missing[letter.offset]
                    if why := await replay.send(letter, value):
                        notice(f"{letter.about.origin}: {why}")
                    else:
                        replayed += 1
                    advance(1)
    for letter in missing.values():
        notice(f"{letter.about.origin}: a newer record has replaced the dead letter meanwhile; run the command again")
    left = len(found) - replayed
    notice(f"replayed: {replayed}, left: {left}")
    return 1 if left else 0


async def _discard(settings: Settings, options: argparse.Namespace) -> int:
    wanted = Selection(options.tables)
    async with open_letters(settings) as letters:
        pending = [
            letter for letter in await letters.pending() if wanted.table(letter.about.schema, letter.about.table)
        ]
    found = [letter for letter in pending if letter.about.reason != "parked"]
    if kept := len(pending) - len(found):
        notice(f"kept: {kept} of parked tables; they end with the load of their tables")
    if not found:
        notice("no dead letters to discard")
        return 0
    tables = first_names(sorted({letter.about.table_name for letter in found}))
    if not options.yes and not confirmed(f"Give up {len(found)} changes of {tables} for ever?"):
        return 1
    await discard(settings, found)
    notice(f"discarded: {len(found)} of {tables}; load these tables again: databus backfill start TABLE --clean")
    return 0


_ACTIONS = {"list": _list, "replay": _replay, "discard": _discard}
