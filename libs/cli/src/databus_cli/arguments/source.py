"""Arguments of `databus source`."""

import argparse

from databus_core.config_option import add_config

_SWITCH = """\
Move the reader to another host of source.hosts. That host must have every published transaction, and must not have
purged the next ones; if it is behind, it has 10 s to catch up. If the host is refused, the reader stays where it is.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    action = actions.add_parser("switch", help="move the reader to another host", description=_SWITCH)
    action.add_argument("host", metavar="HOST:PORT", help="one of source.hosts")
    add_config(action)
