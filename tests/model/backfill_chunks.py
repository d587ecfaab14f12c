"""Chunks of a table's rows between their SELECT and their splice into the stream."""

from dataclasses import dataclass, field

from model.backfill_changes import KEYLESS, KEYS, Change, Rows
from model.backfill_source import Host

#: limit of collected keys
_COLLECTED = 3


@dataclass
class Chunk:
    """Rows of a table behind the key `after`; for a table without key, all of its rows."""

    table: str
    after: int
    #: S, as the set of transactions that the stream has passed, and as an offset in the log of the stream's host
    start: int
    offset: int
    rows: Rows | None = None
    #: keys of changes behind S
    keys: set[int | None] = field(default_factory=set)
    #: last key of the rows
    last: int = -1
    #: host that answered the SELECT
    host: Host | None = None
    #: H, the transactions in its log after the SELECT; for a table without key, the transactions that the view contains
    end: int | None = None

    @property
    def final(self) -> bool:
        return self.last >= KEYS

    def select_all(self, host: Host, executed: int) -> None:
        """Read all rows in a view of the stream's host, unless the stream has passed more than the view contains."""
        if not executed & ~host.visible:
            self.host, self.rows, self.last, self.end = host, dict(host.rows[self.table]), KEYS, host.visible

    def select(self, host: Host, limit: int, rules: frozenset[str]) -> None:
        """Read rows behind the last chunk in a view of this host, if the view contains everything up to S."""
        missing = self.start & ~host.visible if "set" in rules else host.shown < self.offset
        if missing and "view" in rules:
            return
        self.host = host
        rows = sorted(row for row in host.rows[self.table].items() if row[0] > self.after)[:limit]
        self.rows = dict(rows)
        self.last = rows[-1][0] if len(rows) == limit else KEYS

    def collect(self, change: Change, rules: frozenset[str]) -> bool:
        """Collect the keys of a change; return whether the chunk must be dropped."""
        if "collect" not in rules or self.table == KEYLESS:
            return False
        keys = {change.before} if "before image" in rules else set()
        keys |= {change.after} if "after image" in rules else set()
        keys |= self.keys
        keys.discard(None)
        if len(keys) > _COLLECTED:
            return "too many keys" in rules
        self.keys = keys
        return False

    def ready(self, executed: int, rules: frozenset[str]) -> bool:
        """Whether a stream that has passed these transactions is where the rows belong."""
        if self.rows is None:
            return False
        if self.table == KEYLESS:
            return "exact" not in rules or executed == self.end
        return "end" not in rules or (self.end is not None and not self.end & ~executed)

    def kept(self) -> Rows:
        """Return the rows that did not change in the window."""
        assert self.rows is not None
        return {key: value for key, value in self.rows.items() if key not in self.keys}
