"""Arguments of `databus pipeline`."""

import argparse

from databus.settings import add_config

_RESET = """\
Make the pipeline begin again at reader.start: its progress and its schema history in Kafka and its keys in Redis are
reset. Reader and publisher must be stopped. Records in Kafka stay, but the changes between the old progress and
reader.start are not published: take a new dump afterwards.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    action = actions.add_parser("reset", help="make the pipeline begin again at reader.start", description=_RESET)
    action.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_config(action)
