"""Arguments of `databus deadletter`."""

import argparse

from databus_core.config_option import add_config

_LIST = "List the dead letters that have not been replayed."
_REPLAY = """\
Write each dead letter's record to its topic and partition, and delete the letter; with publisher.delivery=exactly_once,
one Kafka transaction does both. A letter whose record still cannot be written is kept and reported. A replayed record
comes after later changes of its row.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments. `options.action` is the name of the chosen action."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION", dest="action")
    listing = actions.add_parser("list", help=_LIST, description=_LIST)
    listing.add_argument("--json", action="store_true", help="print each dead letter as one line of JSON")
    replaying = actions.add_parser("replay", help="publish the records that can be published now", description=_REPLAY)
    replaying.add_argument("--to", metavar="TOPIC", help="write the records to this topic instead of their own")
    for action in (listing, replaying):
        add_config(action)
