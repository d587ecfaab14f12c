"""Numbers of transactions in positions."""

from databus_binlog import Position


def last_number(position: Position) -> int:
    """Return a number that each transaction without a tag raises by one.

    It is that of the last transaction of the server that alone writes, without gaps, plus those that it has of others.
    """
    # Behind its own number, a part of MySQL lists transactions whose GTIDs have tags.
    untagged = (part.split(":")[:2][-1] for part in position.gtid_set.split(","))
    return sum(int(number.rpartition("-")[2]) for number in untagged)
