"""The transactions that a program has already, which begins after a GTID set."""

from functools import lru_cache

import msgspec

from databus_binlog import GtidSet
from databus_core.errors import InvalidSettings


class Executed(msgspec.Struct, frozen=True):
    """Which transactions after those of the bookmark's `after` a GTID set has.

    The publisher commits several transactions together, and the progress has one GTID set for all of them. So the set
    may have only some of those that were committed together: their own GTIDs show which.
    """

    gtid_set: str
    #: ordinal of the last transaction that the set may have
    until: int
    #: GTID set of the transactions up to the bookmark's `after`
    before: str

    def has(self, transaction: int, gtid: str) -> bool:
        """Return whether the set has a transaction. `gtid` is empty if its record does not have it.

        Raises InvalidSettings if it is not known.
        """
        if transaction > self.until:
            return False
        if not gtid:
            raise InvalidSettings(
                f"start: the GTID set has only some of the transactions up to {self.until}, which were published "
                f"together, and transaction {transaction} does not say its GTID, as in format databus: begin with "
                f"start='gtid:{self.before}', and expect some changes that you have, or with a snapshot"
            )
        return _parsed(self.gtid_set).contains(gtid)


_parsed = lru_cache(1)(GtidSet.of_either)
