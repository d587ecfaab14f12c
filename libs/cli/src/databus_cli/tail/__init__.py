"""`databus tail` and `databus sql`: print the changes that a program with the client gets."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterable

from databus import Change, Databus, Transaction
from databus_cli.tail.texts import JsonLines, PrettyLines
from databus_core.errors import DatabusError

#: returns the lines of some changes of one transaction
Printer = Callable[[list[Change]], Iterable[str]]


def run(options: argparse.Namespace) -> int:
    """Print changes for people or as JSON."""
    printer = JsonLines() if options.json else PrettyLines(coloured=sys.stdout.isatty())
    return follow(options, printer.of)


def follow(options: argparse.Namespace, lines: Printer) -> int:
    """Print changes until it is interrupted, or until there were enough."""
    try:
        asyncio.run(_follow(options, lines))
    except LookupError as error:
        raise DatabusError(f"only formats with exact texts can be printed: {error}") from error
    return 0


async def _follow(options: argparse.Namespace, lines: Printer) -> None:
    left = options.count
    async with Databus(options.config) as databus:
        changes = databus.changes(options.tables or "*.*", start=options.start, store=options.store)
        async for transaction in changes.transactions():
            shown = transaction.changes[:left]
            _print(lines(list(shown)))
            await _done(transaction, shown)
            if left is not None:
                left -= len(shown)
                if left == 0:
                    return


async def _done(transaction: Transaction, shown: Iterable[Change]) -> None:
    """Keep how far it is: within the transaction, if only a part of it was wanted."""
    *_, last = shown
    await (transaction.ack() if last is transaction.changes[-1] else last.ack())


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
