"""`databus check`: what is right and wrong with database, Kafka and Redis, and what to do."""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import groupby

import msgspec
from rich.console import Console
from rich.text import Text

from databus_changes.host_checks import DUMP_CHECKS, Host, host_results
from databus_changes.reader_checks import READER_CHECKS
from databus_core.checks import Check, Result, Verdict, results
from databus_core.kafka_checks import PUBLISHER_CHECKS, kafka_results, known_progress
from databus_core.leases import ROLES
from databus_core.redis_checks import redis_results
from databus_core.settings import Settings, load
from databus_messages.format_check import FORMATS
from databus_messages.routing.rule_check import RULES

#: what reader and dump-api check of a host; each check once
_HOST_CHECKS: list[Check[Host]] = list(dict.fromkeys([*READER_CHECKS, *DUMP_CHECKS, RULES]))
_STYLES = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.WRONG: "bold red"}
#: widths of the first columns
_VERDICT, _WHAT = 9, 22


def run(options: argparse.Namespace) -> int:
    """Make all checks and print them."""
    found = asyncio.run(check(load(options.config)))
    shown = [result for result in found if not options.faults or result.verdict is not Verdict.OK]
    if options.json:
        sys.stdout.buffer.writelines(msgspec.json.encode(_members(result)) + b"\n" for result in shown)
    else:
        print_results(shown, found)
    return 1 if any(result.verdict is Verdict.WRONG for result in found) else 0


async def check(settings: Settings) -> list[Result]:
    """Check all dependencies at the same time, so that a slow one delays no other."""
    known = asyncio.create_task(known_progress(settings))

    async def host(address: str) -> list[Result]:
        return await host_results(settings, address, _HOST_CHECKS, await known)

    groups = await asyncio.gather(
        *map(host, settings.source.hosts),
        kafka_results(settings, [*PUBLISHER_CHECKS, RULES]),
        redis_results(settings, *ROLES),
        results("publisher", nullcontext(settings), [FORMATS]),
    )
    return [result for group in groups for result in group]


def print_results(shown: Iterable[Result], found: Iterable[Result]) -> None:
    """Print results as a table, a section for each dependency, and a last line that counts all that were found."""
    console = Console(width=None if sys.stdout.isatty() else 10_000, markup=False, highlight=False)
    for where, of_one in groupby(shown, key=lambda result: result.where):
        console.print(where)
        for result in of_one:
            console.print(_row(result, console.width))
    verdicts = [result.verdict for result in found]
    console.print(", ".join(f"{verdicts.count(each)} {each}" for each in Verdict))


def _row(result: Result, width: int) -> Text:
    """Lay out one result; its text is wrapped inside its column."""
    row = Text("  ")
    row.append(f"{result.verdict:<{_VERDICT}}", _STYLES[result.verdict])
    row.append(f"{result.what:<{_WHAT}} ")
    indent = 2 + _VERDICT + _WHAT + 1
    lines = [wrapped for line in _lines(result) for wrapped in Text(line).wrap(Console(), max(width - indent, 30))]
    return row + Text("\n" + " " * indent).join(lines)


def _lines(result: Result) -> list[str]:
    """Return the texts without the dependency's name, under which they stand."""
    return [line.removeprefix(f"{result.where}: ") for line in result.lines]


def _members(result: Result) -> dict[str, str]:
    return {"where": result.where, "what": result.what, "verdict": result.verdict, "text": "\n".join(_lines(result))}
