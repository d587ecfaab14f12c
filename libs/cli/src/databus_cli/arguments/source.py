"""Arguments of `databus source`."""

import argparse

from databus.settings import add_config

_SWITCH = """\
Move the reader to another host of source.hosts. It moves if that host has all that was published and still has
all that comes next; it waits up to 10 s for a host that is behind. Where the host is refused, the reader stays.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    action = actions.add_parser("switch", help="move the reader to another host", description=_SWITCH)
    action.add_argument("host", metavar="HOST:PORT", help="one of source.hosts")
    add_config(action)
