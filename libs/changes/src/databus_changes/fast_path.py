"""Ordinary transactions, which compiled code turns into the pipe's bytes: no event of them becomes a Python object.

`Translator` is the specification: it takes all other groups, and gives the same events for these. A transaction is left
to it, from its first event on, if it is not ordinary (`databus_wire.binlog_walk`) or large and not complete in a
chunk, or if one of its tables is new, parked or changed, or of interest to somebody else.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from databus_binlog import AnyEvent, Events, Flavor, TableMap
from databus_binlog.events import decode_part
from databus_changes.tables import TableName
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_wire.binlog_walk import BinlogWalk

#: A chunk often ends inside of a transaction, whose beginning is kept and read again with the next chunk. If that would
#: take long, the transaction is left to the translator.
_KEPT_BYTES = 1 << 16


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


class FastPath:
    """Takes ordinary transactions past a translator, out of the chunks of its binlog.

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
        #: the table maps of the chunk's rows, as `Translator.translate` needs them
        self.tables: Mapping[str, TableMap] = {}
        #: beginning of an ordinary transaction, whose end is in a later chunk
        self._kept = b""
        #: the table maps of the chunk alone, and whether it has the beginning of what is left of it
        self._own_tables: Mapping[str, TableMap] = {}
        self._has_beginning = True
        self._compiled = BinlogWalk(
            mariadb=flavor == "mariadb", gtids=gtids, table_of=self._table, executed=translator.reached.executed
        )

    def begin(self, chunk: Events) -> None:
        """Begin with the first event of a chunk. Until `done`, call `take`, and `group` when that returns None."""
        self.tables = {**self.tables, **chunk.tables} if self._kept else chunk.tables
        self._own_tables, self._has_beginning = chunk.tables, not self._kept
        self._compiled.begin(chunk.data, self._kept)
        self._kept = b""

    @property
    def done(self) -> bool:
        """Whether all events of the chunk were taken, or are kept for the next one."""
        return self._compiled.done

    def take(self, size: int) -> Taken | None:
        """Take the next ordinary transactions, up to about `size` bytes; None if the next event begins no such one.

        If the chunk ends inside of one, it is kept until the next chunk.
        """
        if not self._group.may_be_passed:
            return None
        compiled = self._compiled
        encoded = compiled.take(self._reached.transaction, size)
        if encoded is None:
            self._kept = compiled.keep(_KEPT_BYTES)
            if self._has_beginning:
                self.tables = self._own_tables
            return None
        self._has_beginning = True
        place = compiled.file, compiled.end
        self._reached.pass_groups(place, compiled.time_us, compiled.transactions, reported=compiled.has_rows)
        return Taken(encoded, compiled.events, compiled.rows, compiled.transactions)

    def group(self) -> list[AnyEvent]:
        """Return the next event, and all others before the next GTID event, for `Translator.translate`."""
        self._has_beginning = True
        return decode_part(*self._compiled.pass_group())

    def rest(self) -> list[AnyEvent]:
        """Return the events that were kept for the next chunk, if there is none."""
        return self.release(Events(b"\x90", 0, 0, {})) if self._kept else []

    def release(self, chunk: Events) -> list[AnyEvent]:
        """Return all events of a chunk, after those that were kept, for `Translator.translate`."""
        if not self._kept:
            self.tables = chunk.tables
            return list(chunk)
        self.begin(chunk)
        events: list[AnyEvent] = []
        while not self.done:
            events += self.group()
        return events

    def _table(self, fingerprint: str) -> str | None:
        """Return the fingerprint of the table of a table map; None if its rows cannot be taken."""
        table = self._tracker.table_by_fingerprint(fingerprint)
        if table is None or not self._definitions.is_latest(table) or self._group.leaves_out(table):
            return None
        return None if self._needed((table.schema, table.name)) else table.fingerprint
