"""Arguments of `databus sql`."""

import argparse

from databus_cli.arguments.shared import describe
from databus_cli.arguments.tail import add_choice

_DESCRIPTION = """\
Print changes as SQL that does them again, as they are published to Kafka, until it is interrupted. Statements that
change tables are printed as they were logged. The binlog itself as SQL: databus binlog --output sql.
"""
_EPILOG = """\
examples:
  databus sql shop.orders --from snapshot --store place.json | mariadb copy
  databus sql 'shop.*' --from 2026-11-20T10:30:00+01:00 --count 100 > changes.sql
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    describe(parser, _DESCRIPTION, _EPILOG)
    add_choice(parser)
