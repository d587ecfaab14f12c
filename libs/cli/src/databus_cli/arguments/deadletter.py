"""Arguments of `databus deadletter`."""

import argparse

from databus_cli.arguments.shared import add_action, add_actions, describe
from databus_core.config_option import add_config

_LIST = "List the dead letters that have not been replayed."
_REPLAY = """\
Write each dead letter's record to its topic and partition, and delete the letter; with publisher.delivery=exactly_once,
one Kafka transaction does both. A letter whose record still cannot be written is kept and reported. A replayed record
comes after later changes of its row.
"""
_EPILOG = """\
examples:
  databus deadletter list
  databus deadletter replay
"""
_LIST_EPILOG = """\
examples:
  databus deadletter list
  databus deadletter list --json | jq 'select(.table == "orders") | .error'
"""
_REPLAY_EPILOG = """\
exit code: 1 if a letter is left

examples:
  databus deadletter replay
  databus deadletter replay --to shop.repaired
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    describe(parser, "Show changes that could not be published, and publish them once that is possible.", _EPILOG)
    actions = add_actions(parser)
    listing = add_action(actions, "list", "list those that have not been replayed", _LIST, _LIST_EPILOG)
    listing.add_argument("--json", action="store_true", help="print each dead letter as one line of JSON")
    summary = "publish the records that can be published now"
    replaying = add_action(actions, "replay", summary, _REPLAY, _REPLAY_EPILOG)
    replaying.add_argument("--to", metavar="TOPIC", help="write the records to this topic instead of their own")
    for action in (listing, replaying):
        add_config(action)
