"""The GTIDs of executed transactions: all of them, and those that no Commit or Heartbeat has reported yet."""

from databus_binlog import Flavor, GtidSet

#: reported GTIDs are merged into the set of all when there are this many
_MERGED = 1000


class Executed:
    """Collects the GTIDs of transactions that get no Commit of their own, until a Commit or Heartbeat reports them."""

    def __init__(self, flavor: Flavor, before: str = "") -> None:
        self._flavor = flavor
        self._gtids: GtidSet | None = None
        self._all = GtidSet.parse(flavor, before)
        #: GTIDs and GTID sets that were reported, and are not in `_all` yet
        self._reported: list[str] = []

    @property
    def pending(self) -> bool:
        """Whether there are collected GTIDs that no Commit or Heartbeat has reported yet."""
        return self._gtids is not None

    def add(self, gtid: str) -> None:
        """Add the GTID of a transaction; "" if it has none."""
        if gtid:
            self._collected().add(gtid)

    def add_set(self, gtids: str) -> None:
        """Add the GTIDs of several transactions, as a GTID set."""
        self._collected().merge(gtids)

    def take(self, gtid: str = "") -> str:
        """Return the collected GTIDs and `gtid` as one GTID set to report, and forget them."""
        reported = gtid
        if self._gtids is not None:
            self.add(gtid)
            reported, self._gtids = str(self._gtids), None
        if reported:
            self.note(reported)
        return reported

    def note(self, gtids: str) -> None:
        """Take note of GTIDs, as a GTID set, that Commits have reported each for itself."""
        self._reported.append(gtids)
        if len(self._reported) >= _MERGED:
            self._merge()

    def all(self) -> str:
        """Return all executed GTIDs as a GTID set: those before, those that were reported, and the collected ones."""
        self._merge()
        if self._gtids is not None:
            self._all.merge(str(self._gtids))
        return str(self._all)

    def _collected(self) -> GtidSet:
        if self._gtids is None:
            self._gtids = GtidSet.parse(self._flavor, "")
        return self._gtids

    def _merge(self) -> None:
        for gtids in self._reported:
            self._all.merge(gtids)
        self._reported.clear()
