"""Load child tables again after rows of their parents were deleted, or their keys changed (`doubt.cascades: heal`).

The children's own changes are certain, so they are never parked. A change of a parent requests one load of each child.
If a load of the child is requested and has not begun, no other is requested; if it has begun, another one is.
"""

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from databus_changes.cascades import Cascades, logs_cascades, read_cascades
from databus_changes.catalog import Queries
from databus_changes.tables import TableName
from databus_core.events import (
    Action,
    Begin,
    Event,
    OversizedRow,
    QueryEvent,
    RowsEvent,
    SnapshotTruncate,
    Table,
    full_name,
)
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.settings import Settings
from databus_core.settings.rules import first_matches
from databus_core.source_connection import connect_source
from databus_reader.backfill.pauses import Pauses
from databus_reader.backfill.states import BackfillStates

log = get_logger(__name__)

_decode_images = msgspec.msgpack.Decoder(list[list[bytes | bool | None]]).decode


class CascadeLoads:
    """Requests the loads of one generation."""

    def __init__(
        self,
        settings: Settings,
        host: str,
        states: BackfillStates,
        tables: Mapping[str, Table],
        pauses: Pauses,
        look: Callable[[], None],
    ) -> None:
        """`tables` maps the fingerprints in events to tables. `look` is called when a backfill was added."""
        self._settings = settings
        self._host = host
        self._states = states
        self._tables = tables
        self._pauses = pauses
        self._look = look
        self._cascades = Cascades([])
        self._active = False
        #: where the transaction begins
        self._place = "", 0

    async def begin(self, session: Queries) -> None:
        """Read the foreign keys, if this is wanted, and needed at this server."""
        self._active = self._settings.doubt.cascades == "heal" and not await logs_cascades(session)
        if self._active:
            self._cascades = await read_cascades(session)

    def concerns(self, table: TableName) -> bool:
        """Return whether changes of a table may change rows of others."""
        return self._active and bool(self._cascades.deleted(table) or self._cascades.updated(table))

    async def follow(self, events: list[Event]) -> list[Event]:
        """Return the events of the stream, and after each change of a parent the records that request loads."""
        if not self._active:
            return events
        if any(isinstance(event, QueryEvent) for event in events):
            # The keys that were known stay: the database may be ahead of the stream, and have dropped them.
            async with connect_source(self._settings.source, self._host) as session:
                self._cascades = self._cascades.union(await read_cascades(session))
        found: list[Event] = []
        for event in events:
            found.append(event)
            if isinstance(event, Begin):
                self._place = event.file, event.start
            for child in sorted(self._children(event)):
                found += self._load(child)
        return found

    def _children(self, event: Event) -> Iterable[TableName]:
        """Return the tables whose rows may have changed with this event."""
        if not isinstance(event, RowsEvent | OversizedRow | SnapshotTruncate):
            return ()
        table = self._tables[event.table]
        name = table.schema, table.name
        if isinstance(event, SnapshotTruncate):
            # A parent that was parked: which of its rows went meanwhile is not known.
            doubt = self._states.doubts.get(name)
            filling = doubt is not None and doubt.state == "filling" and not event.output
            return (self._cascades.deleted(name) | self._cascades.updated(name)) - {name} if filling else ()
        if event.action is Action.DELETE:
            return self._cascades.deleted(name)
        if event.action is Action.UPDATE and (isinstance(event, OversizedRow) or self._moves_keys(event, table)):
            return self._cascades.updated(name)
        return ()

    def _moves_keys(self, event: RowsEvent, table: Table) -> bool:
        """Return whether an update changes columns that foreign keys refer to."""
        columns = self._cascades.columns((table.schema, table.name))
        positions = [number for number, column in enumerate(table.columns) if column.name.lower() in columns]
        if not positions:
            return False
        images = _decode_images(event.rows)
        return any(
            before[position] != after[position]
            for before, after in zip(images[::2], images[1::2], strict=True)
            for position in positions
        )

    def _load(self, child: TableName) -> list[Event]:
        """Request a load of a table, unless one that has not begun will have this change."""
        source, rules = self._settings.source, self._settings.publisher.rules
        doubt = self._states.doubts.get(child)
        if doubt is not None and doubt.state == "parked":  # its load, by whoever requests it, is still to begin
            return []
        if not (source.captures(*child) and first_matches(rules, *child)) or self._states.will_be_loaded(child):
            return []
        now = time.time_ns() // 1000
        _, records = self._states.load_again(child, now + self._pauses.next_us(child, self._place, now))
        self._look()
        name = full_name(*child)
        log.info(LogEvent.CHILD_CHANGED, f"{name} is loaded again: a foreign key has changed its rows", table=name)
        return [*records]
