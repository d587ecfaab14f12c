"""Arguments of `databus tail`, and those that it shares with `databus sql`."""

import argparse
from pathlib import Path

from databus_cli.arguments.shared import describe, table_pattern
from databus_core.config_option import add_config

_DESCRIPTION = """\
Print changes as they are published to Kafka, in the order of the source, until it is interrupted.
"""
_EPILOG = """\
output:
  pretty     a block for each transaction; coloured on a terminal
  json       one line for each change: its action, table, transaction, sequence, position and time, and
             the exact text of the row as "row", of an update as "before" and "after"; a binary value is {"base64": "…"}

examples:
  databus tail
  databus tail shop.orders 'crm.*' --from 2026-11-20T10:30:00+01:00
  databus tail shop.orders --from snapshot --json | jq -c .row
  databus tail shop.orders --from mysql-bin.000007:4711 --count 10
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    describe(parser, _DESCRIPTION, _EPILOG)
    add_choice(parser)
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each change")


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose the changes."""
    parser.add_argument(
        "tables", nargs="*", type=table_pattern, metavar="TABLE", help="schema.table, with * and ? (default: all)"
    )
    parser.add_argument(
        "--from",
        dest="start",
        type=_start,
        default="latest",
        metavar="START",
        help="snapshot (all rows first), latest, earliest, FILE:OFFSET, gtid:SET, or an ISO time with a zone "
        "(default: latest)",
    )
    parser.add_argument("--count", type=_count, metavar="N", help="exit after so many changes")
    parser.add_argument("--store", type=Path, metavar="FILE", help="continue where this file says, and keep it true")
    add_config(parser)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _start(text: str) -> object:
    from datetime import datetime

    from databus import Position

    if text in ("snapshot", "latest", "earliest") or text.startswith("gtid:"):
        return text
    file, _, offset = text.rpartition(":")
    if file and "." in file and offset.isdecimal():
        return Position("", file, int(offset))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not snapshot, latest, earliest, FILE:OFFSET, gtid:SET or a time such as "
            "2026-11-20T10:30:00+01:00"
        )
    return time
