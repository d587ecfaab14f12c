"""Usual transactions, which compiled code turns into the pipe's bytes: no event of them becomes a Python object.

`Translator` is the specification: it takes all other groups, and gives the same events for these. A transaction is left
to it, from its first event on, if it is not usual or not complete in a chunk (`databus_wire.binlog_walk`), or if
one of its tables is new, parked or changed, or of interest to somebody else.
"""

from collections.abc import Callable
from typing import NamedTuple

from databus_binlog import AnyEvent, Events, Flavor
from databus_changes.tables import TableName
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_wire.binlog_walk import BinlogWalk


class Taken(NamedTuple):
    """Events for the pipe: whole transactions."""

    #: msgpack of each event
    encoded: bytes
    #: number of events
    events: int
    #: number of row images
    rows: int
    #: number of transactions
    transactions: int


class UsualTransactions:
    """Takes usual transactions past a translator, out of the chunks of its binlog.

    flavor, tracker, gtids: as the translator has them.
    needed: returns whether the events of a table are needed as objects.
    """

    def __init__(
        self,
        translator: Translator,
        flavor: Flavor,
        tracker: TableTracker,
        *,
        gtids: bool,
        needed: Callable[[TableName], bool],
    ) -> None:
        self._tracker = tracker
        self._definitions = translator.definitions
        self._group = translator.group
        self._reached = translator.reached
        self._needed = needed
        self._chunk = Events(b"\x90", 0, 0, {})
        self._compiled = BinlogWalk(
            mariadb=flavor == "mariadb", gtids=gtids, table_of=self._table, executed=translator.reached.executed
        )

    def begin(self, chunk: Events) -> None:
        """Begin with the first event of a chunk. Until `done`, call `take`, and `group` when that returns None."""
        self._chunk = chunk
        self._compiled.begin(chunk.data)

    @property
    def done(self) -> bool:
        """Whether all events of the chunk were taken."""
        return self._compiled.done

    def take(self, size: int) -> Taken | None:
        """Take the next usual transactions, up to about `size` bytes; None if the next event begins no such one."""
        if not self._group.may_be_passed:
            return None
        compiled = self._compiled
        encoded = compiled.take(self._reached.transaction, size)
        if encoded is None:
            return None
        place = compiled.file, compiled.end
        self._reached.pass_groups(place, compiled.time_us, compiled.transactions, reported=compiled.has_rows)
        return Taken(encoded, compiled.events, compiled.rows, compiled.transactions)

    def group(self) -> list[AnyEvent]:
        """Return the next event, and all others before the next GTID event, for `Translator.translate`."""
        return self._chunk.between(*self._compiled.pass_group())

    def _table(self, fingerprint: str) -> str | None:
        """Return the fingerprint of the table of a table map; None if its rows cannot be taken."""
        table = self._tracker.table_by_fingerprint(fingerprint)
        if table is None or not self._definitions.is_latest(table) or self._group.leaves_out(table):
            return None
        return None if self._needed((table.schema, table.name)) else table.fingerprint
