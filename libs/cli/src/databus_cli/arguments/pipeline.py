"""Arguments of `databus pipeline`."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from databus_cli.arguments.shared import add_action, add_actions, describe
from databus_core.config_option import add_config

if TYPE_CHECKING:
    from databus_core.settings import AnyStart, StartAfterGtids, StartAt

_RESET = """\
Make the pipeline continue at another position, or without --to at reader.start. Its progress, its schema history and
its table states in Kafka and its keys in Redis are reset; records in Kafka stay. Reader and publisher must be stopped.
The command shows what is skipped or published again, and asks before it changes anything. If changes are skipped, take
a new dump afterwards.
"""
_SKIP = """\
Let the reader continue after one transaction at which it stops. Its rows become dead letters, and its tables are
parked and loaded again, all captured tables if it does not show which. The command shows the transaction, and asks
before it requests this. The reader does it when it reads the transaction; services need not be stopped.
"""
_SKIP_EPILOG = """\
examples:
  databus pipeline skip --transaction 0-1-4711
  databus pipeline skip --transaction mysql-bin.000007:1234 --yes
"""
_EPILOG = """\
examples:
  databus pipeline reset --to latest
  databus pipeline skip --transaction 0-1-4711
"""
_POSITIONS = """\
positions:
  latest                     the end of the binlog, now
  snapshot                   the end of the binlog, now, and a backfill of all captured tables
  earliest                   the oldest binlog file
  mysql-bin.000007:1234      between two transactions in the binlog of the first of source.hosts
  gtid:0-1-9                 after these transactions, as MariaDB (0-1-9) or MySQL (UUID:1-5) writes GTID sets
  time:2026-11-20T10:00:00Z  the first transaction that was committed then or later; an offset (+01:00) may replace Z
  dump:ID                    the position of a dump

examples:
  databus pipeline reset --to earliest
  databus pipeline reset --to time:2026-11-20T10:00:00+01:00 --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    describe(parser, "Make a pipeline continue at another position, or without one transaction.", _EPILOG)
    actions = add_actions(parser)
    resetting = add_action(actions, "reset", "make the pipeline continue at another position", _RESET, _POSITIONS)
    resetting.add_argument("--to", type=_start, metavar="POSITION", help="where it continues (default: reader.start)")
    resetting.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    skipping = add_action(actions, "skip", "continue after one transaction", _SKIP, _SKIP_EPILOG)
    skipping.add_argument(
        "--transaction",
        type=_transaction,
        required=True,
        metavar="GTID|FILE:OFFSET",
        help="the transaction, as the reader's error names it; the offset may be anywhere in it",
    )
    skipping.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for action in (resetting, skipping):
        add_config(action)


def _start(text: str) -> AnyStart:
    from databus_core.settings import parse_start

    try:
        return parse_start(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _transaction(text: str) -> StartAfterGtids | StartAt:
    from databus_core.settings import StartAfterGtids, StartAt, parse_start

    for form in (text, f"gtid:{text}"):
        with suppress(ValueError):
            if isinstance(found := parse_start(form), StartAt | StartAfterGtids):
                return found
    raise argparse.ArgumentTypeError(f"expected a GTID or FILE:OFFSET, not {text[:200]!r}")
