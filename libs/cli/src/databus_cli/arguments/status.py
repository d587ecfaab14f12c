"""Arguments of `databus status`."""

import argparse

from databus_cli.arguments.shared import describe
from databus_core.config_option import add_config

_DESCRIPTION = """\
Show how far the pipeline is behind the binlog, in seconds and bytes; its position, the active reader and publisher,
what waits in Redis, tables in doubt, backfills, and dead letters. Nothing is changed.
"""
_EPILOG = """\
exit code: 1 if a part of it cannot be read; the rest is shown nevertheless

examples:
  databus status
  databus status --watch
  databus status --json | jq .lag.seconds
  databus status --watch --json --interval 10 >> lag.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    describe(parser, _DESCRIPTION, _EPILOG)
    parser.add_argument("--watch", action="store_true", help="show it again and again, until an interrupt")
    parser.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="pause of --watch (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with --watch one a line")
    add_config(parser)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return seconds
