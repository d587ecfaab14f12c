"""Arguments of `databus check`."""

import argparse

from databus_cli.arguments.shared import describe
from databus_core.config_option import add_config

_DESCRIPTION = """\
Check everything that reader, publisher and dump-api need, and show it in one table: settings and grants of each host
of the database, the binlog's retention, Kafka's rights and limits, Redis. What is wrong names what to do. Nothing is
changed. All checks are made, whatever fails.
"""
_EPILOG = """\
exit code: 0 if nothing is wrong, also with warnings; 1 if something is wrong

examples:
  databus check
  databus check --faults                       only what needs attention
  databus check --json | jq 'select(.verdict == "wrong") | .text'
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    describe(parser, _DESCRIPTION, _EPILOG)
    parser.add_argument("--faults", action="store_true", help="show only warnings and what is wrong")
    parser.add_argument("--json", action="store_true", help="print each result as one line of JSON")
    add_config(parser)
