"""Arguments of `databus deadletter`."""

import argparse

from databus_cli.arguments.shared import add_action, add_actions, add_tables, describe
from databus_core.config_option import add_config

_LIST = "List the dead letters that have not been replayed."
_REPLAY = """\
Write each dead letter's record to its topic and partition, and delete the letter; with publisher.delivery=exactly_once,
one Kafka transaction does both. A letter whose record still cannot be written is kept and reported. A replayed record
comes after later changes of its row.
"""
_DISCARD = """\
Give up dead letters: their changes are never published. Load their tables again afterwards (databus backfill start
TABLE --clean), or consumers keep the old rows. A letter of a parked table is kept: it ends with its load.
"""
_EPILOG = """\
examples:
  databus deadletter list
  databus deadletter replay
  databus deadletter discard --tables shop.orders
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


_DISCARD_EPILOG = """\
examples:
  databus deadletter discard
  databus deadletter discard --tables shop.orders --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    describe(
        parser,
        "Show changes that could not be published, publish them once that is possible, or give them up.",
        _EPILOG,
    )
    actions = add_actions(parser)
    listing = add_action(actions, "list", "list those that have not been replayed", _LIST, _LIST_EPILOG)
    listing.add_argument("--json", action="store_true", help="print each dead letter as one line of JSON")
    summary = "publish the records that can be published now"
    replaying = add_action(actions, "replay", summary, _REPLAY, _REPLAY_EPILOG)
    replaying.add_argument("--to", metavar="TOPIC", help="write the records to this topic instead of their own")
    discarding = add_action(actions, "discard", "give up changes that cannot be published", _DISCARD, _DISCARD_EPILOG)
    add_tables(discarding, "letters of these tables")
    discarding.add_argument("--yes", action="store_true", help="do not ask")
    for action in (listing, replaying, discarding):
        add_config(action)
