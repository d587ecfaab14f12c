"""Arguments of `databus source`."""

import argparse

from databus_cli.arguments.shared import add_action, add_actions, describe
from databus_core.config_option import add_config

_SWITCH = """\
Move the reader to another host of source.hosts. That host must have every published transaction, and must not have
purged the next ones; if it is behind, it has 10 s to catch up. If the host is refused, the reader stays where it is.
"""
_EPILOG = """\
exit code: 1, with the reason, if the reader stays or does not answer

examples:
  databus source switch db2:3306
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    describe(parser, "Choose the host that the reader reads from.", _EPILOG)
    action = add_action(add_actions(parser), "switch", "move the reader to another host", _SWITCH, _EPILOG)
    action.add_argument("host", metavar="HOST:PORT", help="one of source.hosts")
    add_config(action)
