"""Arguments of `databus backfill`."""

import argparse
import re

from databus_cli.arguments.shared import table_pattern
from databus_core.config_option import add_config

_START = """\
Load the rows of tables into the stream, beside their changes. Everything is checked before anything is requested. The
ids of the backfills are printed once the requests are durable; the reader does the work. On a terminal the command then
shows its progress until all have ended; Ctrl-C stops that, not the backfills.
"""
_LIST = "List the backfills of the pipeline, the newest first."
_CHANGES = {
    "pause": "stop reading rows until the backfill is resumed",
    "resume": "continue after the last row that was read",
    "cancel": "end a backfill; the rows that were published stay",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments. `options.action` is the name of the chosen action."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION", dest="action")
    start = actions.add_parser("start", help="load tables into the stream", description=_START)
    _add_start(start)
    listing = actions.add_parser("list", help=_LIST, description=_LIST)
    shown = listing.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print each backfill as one line of JSON")
    shown.add_argument("--watch", action="store_true", help="show those that have not ended until they have")
    changes = [actions.add_parser(name, help=text, description=text) for name, text in _CHANGES.items()]
    for action in changes:
        which = action.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "which", nargs="*", type=_which, default=[], metavar="BACKFILL", help="ids, or tables as schema.table"
        )
        which.add_argument("--all", action="store_true", help="all backfills that have not ended")
    for action in (start, listing, *changes):
        add_config(action)


def _add_start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tables", nargs="+", type=table_pattern, metavar="TABLE", help="schema.table with * and ?, as in source.include"
    )
    parser.add_argument("--where", default="", metavar="SQL", help="load only the rows that meet this condition")
    parser.add_argument(
        "--clean", action="store_true", help="publish a TRUNCATE first, so that consumers empty their table"
    )
    parser.add_argument(
        "--topic-only", dest="output", default="", metavar="OUTPUT", help="only this output of publisher.routes"
    )
    parser.add_argument(
        "--any-size",
        action="store_true",
        help="also load a table without a usable key that is larger than backfill.keyless_limit",
    )
    parser.add_argument(
        "--wait",
        action=argparse.BooleanOptionalAction,
        help="exit when the backfills have ended: 0 if all are done (default: only on a terminal)",
    )
    parser.add_argument("--json", action="store_true", help="print each requested backfill as one line of JSON")


def _which(text: str) -> str:
    if "." in text:
        return table_pattern(text)
    if not re.fullmatch("[0-9A-Za-z-]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither the id of a backfill nor a table as schema.table")
    return text
