"""The GTIDs of executed transactions that no Commit or Heartbeat has reported yet."""

from databus_binlog import Flavor, GtidSet


class Executed:
    """Collects the GTIDs of transactions that get no Commit of their own, until a Commit or Heartbeat reports them."""

    def __init__(self, flavor: Flavor) -> None:
        self._flavor = flavor
        self._gtids: GtidSet | None = None

    def add(self, gtid: str) -> None:
        """Add the GTID of a transaction; "" if it has none."""
        if gtid:
            if self._gtids is None:
                self._gtids = GtidSet.parse(self._flavor, "")
            self._gtids.add(gtid)

    def take(self, gtid: str = "") -> str:
        """Return the collected GTIDs and `gtid` as one GTID set to report, and forget them."""
        if self._gtids is None:
            return gtid
        self.add(gtid)
        gtids, self._gtids = self._gtids, None
        return str(gtids)
