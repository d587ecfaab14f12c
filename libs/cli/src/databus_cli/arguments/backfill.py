"""Arguments of `databus backfill`."""

import argparse
import re

from databus_cli.arguments.shared import Actions, add_action, add_actions, describe, table_pattern
from databus_core.config_option import add_config

_START = """\
Load the rows of tables into the stream, beside their changes. Everything is checked before anything is requested. The
ids of the backfills are printed once the requests are durable; the reader does the work. On a terminal the command then
shows its progress until all have ended; Ctrl-C stops that, not the backfills.
"""
_EPILOG = """\
examples:
  databus backfill start shop.orders
  databus backfill list --watch
"""
_START_EPILOG = """\
exit code, of a command that waits: 0 if all backfills are done, 1 if one failed or was cancelled

examples:
  databus backfill start shop.orders 'crm.*' --wait
  databus backfill start shop.orders --where "created >= '2026-11-01'"
  databus backfill start shop.orders --clean           after a TRUNCATE, so that consumers empty their table
"""
_LIST = "List the backfills of the pipeline, the newest first."
_LIST_EPILOG = """\
examples:
  databus backfill list
  databus backfill list --json | jq 'select(.state == "running")'
"""
_CHANGES = {
    "pause": "stop reading rows until the backfill is resumed",
    "resume": "continue after the last row that was read",
    "cancel": "end a backfill; the rows that were published stay",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    describe(parser, "Load tables into the stream, beside their changes.", _EPILOG)
    actions = add_actions(parser)
    start = add_action(actions, "start", "load tables into the stream", _START, _START_EPILOG)
    _add_start(start)
    listing = add_action(actions, "list", "list the backfills", _LIST, _LIST_EPILOG)
    shown = listing.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print each backfill as one line of JSON")
    shown.add_argument("--watch", action="store_true", help="show those that have not ended until they have")
    changes = [_add_change(actions, name, text) for name, text in _CHANGES.items()]
    for action in (start, listing, *changes):
        add_config(action)


def _add_change(actions: Actions, name: str, text: str) -> argparse.ArgumentParser:
    examples = f"examples:\n  databus backfill {name} shop.orders\n  databus backfill {name} --all --json\n"
    action = add_action(actions, name, text, f"{text[0].upper()}{text[1:]}.", examples)
    which = action.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "which", nargs="*", type=_which, default=[], metavar="BACKFILL", help="ids, or tables as schema.table"
    )
    which.add_argument("--all", action="store_true", help="all backfills that have not ended")
    action.add_argument("--json", action="store_true", help="print each backfill as one line of JSON")
    return action


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
