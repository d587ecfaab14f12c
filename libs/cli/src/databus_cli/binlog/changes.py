"""Binlog events of files become change events, as the reader makes them of a server's."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from databus.errors import FatalError
from databus.events import Action, Begin, Commit, QueryEvent, RowsEvent, Table, TableDefinition
from databus_binlog import (
    AnyEvent,
    Event,
    FormatDescription,
    Gtid,
    OversizedRows,
    PartialRowImage,
    Query,
    Rows,
    RowsQuery,
    TableMap,
    XaPrepare,
    Xid,
)
from databus_cli.binlog.schemas import Schemas, flavor_of

Told: TypeAlias = TableDefinition | Begin | RowsEvent | QueryEvent | Commit

_OTHER_FORMAT = "which this format cannot tell; use --format json"


class Changes:
    """Tells transactions with wanted changes. What a server would have to be asked is left out and counted."""

    def __init__(self, head: FormatDescription, wanted: Callable[[str, str], bool], left_out: Counter[str]) -> None:
        self._schemas = Schemas(head)
        self._mariadb = flavor_of(head) == "mariadb"  # which marks statements that stand alone, and sends no BEGIN
        self._wanted = wanted
        self._left_out = left_out
        self._announced: set[str] = set()
        self._transaction = 0
        self._gtid: Gtid | None = None
        self._thread = 0
        self._in_group = self._begun = False
        self._row = 0
        self._query: bytes | None = None

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[Told]:
        """Tell what an event changed.

        Raises PartialRowImage for rows without all columns, FatalError for an end that leaves open which rows count.
        """
        match event:
            case Rows():
                yield from self._rows(event, tables[event.table])
            case OversizedRows():
                self._left_out["rows above --row-limit"] += 1
                self._row += 1
            case Gtid():
                self._reset()
                self._gtid, self._in_group = event, self._mariadb and not event.standalone
            case FormatDescription():
                self._reset()
            case RowsQuery():
                self._query = event.query
            case Query():
                yield from self._statement(event)
            case XaPrepare():
                if not event.one_phase:
                    self._refuse("an XA transaction is only prepared", event)
                yield from self._end(event, None)
            case Xid():
                yield from self._end(event, event.xid)

    def _rows(self, event: Rows, table_map: TableMap) -> Iterator[Told]:
        if not event.complete:
            raise PartialRowImage(
                f"rows of {table_map.schema}.{table_map.name} at {event.file}:{event.start} lack columns "
                f"(binlog_row_image is not FULL), {_OTHER_FORMAT}"
            )
        yield from self._begin(event)
        table, action = self._schemas.behind(table_map), Action(event.action)
        yield from self._announce(table)
        yield RowsEvent(table.fingerprint, action, self._row, event.start, event.end, event.rows, self._query)
        self._query = None
        self._row += event.count // 2 if action is Action.UPDATE else event.count

    def _statement(self, event: Query) -> Iterator[Told]:
        words = event.query[:32].upper().split()
        if words == [b"BEGIN"] or words[:2] in ([b"XA", b"START"], [b"XA", b"BEGIN"]):
            self._in_group, self._thread = True, event.thread_id
            return
        if words[:1] == [b"ROLLBACK"]:
            self._refuse("a ROLLBACK takes some rows back", event)
        if words != [b"COMMIT"]:
            yield from self._definition(event)
        if not self._in_group or words in ([b"COMMIT"], [b"ROLLBACK"]):
            yield from self._end(event, event.xid)

    def _definition(self, event: Query) -> Iterator[Told]:
        if self._gtid and self._gtid.alter in {"start", "rollback"}:  # it counts when its COMMIT ALTER comes, if ever
            return
        changes = self._schemas.follow(event)
        if not changes:
            self._left_out["statements that define no table"] += 1
        for change, before, after in changes:
            if not self._wanted(change.schema, change.name):
                continue
            if after is None:
                self._left_out["statements on tables that the files do not describe"] += 1
                continue
            yield from self._begin(event)
            for table in (before, after):
                if table is not None:
                    yield from self._announce(table)
            query = change.query.encode("utf-8", "surrogateescape")
            old = before.fingerprint if before is not None else ""
            yield QueryEvent(after.fingerprint, change.action, query, event.start, event.end, old)

    def _announce(self, table: Table) -> Iterator[TableDefinition]:
        if table.fingerprint not in self._announced:
            self._announced.add(table.fingerprint)
            yield TableDefinition(table)

    def _refuse(self, what: str, event: Event) -> None:
        if self._begun:
            raise FatalError(f"{what} at {event.file}:{event.start}, {_OTHER_FORMAT}")

    def _begin(self, event: Rows | Query) -> Iterator[Begin]:
        if self._begun:
            return
        self._begun = True
        self._transaction += 1
        gtid, committed = (self._gtid.gtid, self._gtid.commit_time_us) if self._gtid else ("", 0)
        thread = event.thread_id if isinstance(event, Query) else self._thread
        time_us = committed or event.time * 1_000_000
        yield Begin(self._transaction, gtid, event.file, event.server_id, thread, time_us)

    def _end(self, event: Event, xid: int | None) -> Iterator[Commit]:
        if self._begun:
            yield Commit(self._gtid.gtid if self._gtid else "", event.file, event.end, xid)
        self._reset()

    def _reset(self) -> None:
        self._gtid = self._query = None
        self._thread = self._row = 0
        self._in_group = self._begun = False
