"""`databus backfill`: load tables into the stream, show how far that is, pause, resume and cancel it."""

import argparse
import asyncio
import sys
from collections.abc import Iterable

import msgspec

from databus_cli.backfill.table import print_table
from databus_cli.backfill.watch import watch
from databus_cli.terminal import notice
from databus_core.backfill_status import BackfillStatus, newest_first
from databus_core.kafka_table_states import read_states
from databus_core.settings import Settings, load
from databus_core.table_states import Backfill, Wanted

_CHANGES: dict[str, Wanted] = {"pause": "pause", "resume": "run", "cancel": "cancel"}


def run(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    settings = load(options.config)
    if options.action == "start":
        return _start(settings, options)
    if options.action == "list":
        return _list(settings, options)
    return _change(settings, options)


def _start(settings: Settings, options: argparse.Namespace) -> int:
    # Not at the top: the other actions need no client of the database.
    from databus_changes.backfill_requests import request
    from databus_changes.backfill_tables import BackfillRequest

    wanted = BackfillRequest(
        tables=options.tables,
        where=options.where,
        clean=options.clean,
        output=options.output,
        any_size=options.any_size,
    )
    requested = asyncio.run(request(settings, wanted))
    _print(requested, as_json=options.json)
    sys.stdout.flush()
    waits = sys.stderr.isatty() if options.wait is None else options.wait
    return _watch(settings, {each.id for each in requested}) if waits else 0


def _list(settings: Settings, options: argparse.Namespace) -> int:
    states, _ = asyncio.run(read_states(settings))
    found = newest_first(states)
    if options.watch:
        return _watch(settings, {each.id for each in states.unfinished()})
    if options.json:
        _print_json(found)
    elif found:
        print_table(found)
    else:
        notice("no backfills")
    return 0


def _change(settings: Settings, options: argparse.Namespace) -> int:
    from databus_changes.backfill_requests import change

    tables = ["*.*"] if options.all else [each for each in options.which if "." in each]
    ids = [each for each in options.which if "." not in each]
    _print(asyncio.run(change(settings, _CHANGES[options.action], ids=ids, tables=tables)), as_json=options.json)
    return 0


def _print(backfills: list[Backfill], *, as_json: bool) -> None:
    if as_json:
        _print_json(backfills)
    else:
        sys.stdout.writelines(f"{each.id} {each.full_name}\n" for each in backfills)


def _print_json(found: Iterable[msgspec.Struct]) -> None:
    sys.stdout.buffer.writelines(msgspec.json.encode(each) + b"\n" for each in found)


def _watch(settings: Settings, ids: set[str]) -> int:
    """Show backfills until they have ended. The exit code is 0 only if all are done."""
    try:
        ended = asyncio.run(watch(settings, ids))
    except KeyboardInterrupt:
        notice("no longer watching; the backfills continue: databus backfill list --watch")
        return 130
    failed = [each for each in ended if each.state != "done"]
    for each in failed:
        notice(f"backfill {each.id} of {each.full_name} {_end(each)}")
    return 1 if failed else 0


def _end(status: BackfillStatus) -> str:
    return f"failed: {status.error}" if status.state == "failed" else f"was {status.state}"
