"""Writes random transactions as the pipe's events (`databus_core.events`), in a generation without gaps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

import msgspec
from msgspec.structs import replace

from common.event_tables import values_of_tables
from databus_binlog import ABSENT, Flavor, Position
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    Decided,
    End,
    Event,
    Heartbeat,
    OversizedRow,
    Prepared,
    QueryEvent,
    Row,
    RowsEvent,
    SchemaDefinition,
    Skipped,
    SnapshotEvent,
    SnapshotTruncate,
    Start,
    Table,
    TableDefinition,
)

_UUID, _OTHER = "896e7882-18fe-11ef-ab88-22222d34d411", "00112233-4455-6677-8899-aabbccddeeff"
_EXTRA = Column(name="extra", type="int", raw_type="int", nullable=True)


@dataclass(frozen=True)
class Transaction:
    """What a transaction has."""

    kind: str
    #: index of a table, kind of change and number of rows
    changes: Sequence[tuple[int, str, int]]
    #: what precedes the transaction
    between: str
    #: decides about values, and where entries end
    seed: int


@dataclass(frozen=True)
class Stream:
    """A generation: its entries, and after which of them everything is committed."""

    tables: Sequence[Table]
    entries: Sequence[Sequence[Event]]
    commits: Sequence[bool]


class EventWriter:
    """Writes the events of a generation, with ordinals, GTIDs and offsets that follow each other.

    damage: the share of values that are not valid. cuts: the share of events after which an entry ends.
    """

    def __init__(self, tables: Sequence[Table], *, flavor: Flavor, gtids: bool, damage: float, cuts: float) -> None:
        self._tables, self._flavor, self._damage, self._cuts = list(tables), flavor, damage, cuts
        self._names = tables
        self._has_gtids = gtids
        self._random = Random(0)
        self._values: dict[str, list[list[bytes | None]]] = {
            table.fingerprint: values for table, values in values_of_tables().items()
        }
        self._transaction, self._row, self._offset, self._file = 0, 0, 4, 1
        self._numbers: dict[str, int] = {}
        self._ended: list[int] = []

    def start(self) -> Iterator[Event]:
        yield Start(Position("", self._binlog, 4), "server", self._flavor, 1, in_order=True)
        yield from map(TableDefinition, self._tables)

    def stream(self, events: list[Event]) -> Stream:
        """Cut events into entries."""
        entries: list[list[Event]] = [[]]
        for event in events:
            entries[-1].append(event)
            if self._random.random() < self._cuts:
                entries.append([])
        return Stream(self._names, entries, [self._random.random() < 0.3 for _ in entries])

    def events(self, transaction: Transaction) -> Iterator[Event]:
        """Write a transaction, and what precedes it."""
        self._random.seed(transaction.seed)
        yield from self._between(transaction.between)
        begin = self._begin()
        yield begin
        if transaction.kind == "skipped":
            yield Skipped()
        if transaction.kind == "decided":
            yield Decided("X'01',X'',1")
        if transaction.kind == "schema":
            yield SchemaDefinition("od<d", "latin1")
        if transaction.kind == "chunk":
            yield from self._chunk(self._random.randrange(len(self._tables)))
        elif transaction.kind != "empty":
            for number, change, count in transaction.changes:
                yield from self._change(number, change, count)
        yield self._commit(begin)

    def end(self, how: str) -> Iterator[Event]:
        """Write how the generation ends: by `End`, or by what must not be."""
        rows = self._rows_event(0, Action.INSERT, 1)
        match how:
            case "End":
                yield End()
            case "gap":
                self._transaction += 1
                begin = self._begin()
                yield from (begin, rows, self._commit(begin))
            case "unknown table":
                begin = self._begin()
                yield from (begin, replace(rows, table="0123456789abcdef"), self._commit(begin))
            case "malformed":
                begin = self._begin()
                malformed = replace(rows, rows=msgspec.Raw(msgspec.msgpack.encode([[1]])))
                yield from (begin, malformed, self._commit(begin))
            case "commit outside":
                yield self._commit(self._begin())
            case "rows outside":
                yield rows
            case "second begin":
                yield from (self._begin(), rows, self._begin(), rows)
            case "end inside":
                yield from (self._begin(), rows, End())

    # --- transactions -------------------------------------------------------------------------------------------------

    @property
    def _binlog(self) -> str:
        return f"binlog.{self._file:06}"

    def _next_offset(self) -> tuple[int, int]:
        start = self._offset + self._random.choice([0, 31])
        self._offset = start + self._random.choice([1, 40, 2**16, 2**32])
        return start, self._offset

    def _gtid(self) -> str:
        if not self._has_gtids or self._random.random() < 0.1:
            return ""
        if self._flavor == "mysql":
            source = self._random.choice([f"{_UUID}:"] * 5 + [f"{_UUID}:blue:", f"{_OTHER}:"])
        else:
            source = self._random.choice(["0-1-"] * 5 + ["0-2-", "7-1-"])
        number = self._numbers[source] = self._numbers.get(source, 0) + self._random.choice([1, 1, 1, 1, 1, 2, 10**9])
        return f"{source}{number}"

    def _begin(self) -> Begin:
        if self._random.random() < 0.05:
            self._file, self._offset = self._file + 1, 4
        self._transaction, self._row = self._transaction + 1, 0
        time_us = 1_700_000_000_000_000 + self._transaction * self._random.choice([0, 1, 999_999])
        server, thread = self._random.choice([(1, 7), (2**32 - 1, 0)])
        return Begin(self._transaction, self._gtid(), self._binlog, server, thread, time_us, *self._next_offset())

    def _commit(self, begin: Begin) -> Commit:
        executed, others = begin.gtid, [gtid for gtid in (self._gtid(),) if gtid and self._random.random() < 0.2]
        if others:  # of transactions that are not captured
            executed = ",".join(filter(None, [*others, begin.gtid]))
        xid = self._random.choice([None, 0, self._offset, 2**64 - 1])
        start, end = self._next_offset()
        return Commit(executed, self._binlog, end, xid, start)

    def _between(self, kind: str) -> Iterator[Event]:
        start, end = self._next_offset()
        match kind:
            case "heartbeat":
                yield Heartbeat(self._gtid(), self._binlog, end, 1_700_000_000_000_000 + self._offset)
            case "prepared":
                yield Prepared("X'01',X'',1", self._gtid(), self._gtid(), self._binlog, start, 1_700_000_000_000_000)
            case "decided":
                yield Decided("X'01',X'',1")

    # --- changes ------------------------------------------------------------------------------------------------------

    def _change(self, number: int, change: str, count: int) -> Iterator[Event]:
        match change:
            case "alter":
                yield from self._alter(number)
            case "truncate":
                fingerprint = self._tables[number].fingerprint
                yield QueryEvent(fingerprint, Action.TRUNCATE, b"TRUNCATE t", *self._next_offset(), fingerprint)
            case "oversized":
                action = self._random.choice([Action.INSERT, Action.UPDATE, Action.DELETE])
                yield OversizedRow(self._tables[number].fingerprint, action, self._row, *self._next_offset(), 2**20)
                self._row += 1
            case _:
                yield self._rows_event(number, Action(change), count)

    def _alter(self, number: int) -> Iterator[Event]:
        before = self._tables[number]
        after = self._tables[number] = replace(
            before, columns=(*before.columns, replace(_EXTRA, name=f"extra{len(before.columns)}"))
        )
        self._values[after.fingerprint] = [*self._values[before.fingerprint], [None, b"1", b"2"]]
        yield TableDefinition(after)
        query = "ALTER TABLE t ADD extra INT COMMENT 'é'".encode()
        yield QueryEvent(after.fingerprint, Action.ALTER, query, *self._next_offset(), before.fingerprint)

    def _chunk(self, number: int) -> Iterator[Event]:
        table = self._tables[number].fingerprint
        if first := self._random.random() < 0.5:
            yield SnapshotTruncate(table)
        count = self._random.randrange(3)
        yield SnapshotEvent(table, 0, _packed([self._row_of(number) for _ in range(count)]), 1, first_of_table=first)
        self._row += count

    def _rows_event(self, number: int, action: Action, count: int) -> RowsEvent:
        images: list[Row] = []
        is_partial = self._random.random() < self._damage * 2
        for _ in range(count):
            before = self._row_of(number)
            images.append(before)
            if action is Action.UPDATE:
                images.append(self._updated(before, number))
        if is_partial:
            images = [self._partial(row) for row in images]
        query = self._random.choice([None] * 5 + [b"INSERT INTO t VALUES (1)", "UPDATE t SET a = 'é'".encode()])
        first, self._row = self._row, self._row + count
        place = first, *self._next_offset()
        return RowsEvent(
            self._tables[number].fingerprint,
            action,
            *place,
            _packed(images),
            query,
            self._random.randrange(999),
            is_partial,
        )

    def _row_of(self, number: int) -> Row:
        return [self._damaged(self._random.choice(pool)) for pool in self._pools(number)]

    def _updated(self, before: Row, number: int) -> Row:
        after = list(before)
        for column, pool in enumerate(self._pools(number)):
            if self._random.random() < 0.3:
                after[column] = self._damaged(self._random.choice(pool))
        return after

    def _pools(self, number: int) -> list[list[bytes | None]]:
        return self._values[self._tables[number].fingerprint]

    def _damaged(self, value: bytes | None) -> bytes | None:
        is_valid = not self._damage or self._random.random() >= self._damage
        return value if is_valid else self._random.choice([b"\xff", b"x\xc3", b"", b"1", "é".encode()])

    def _partial(self, row: Row) -> Row:
        return [value if self._random.random() < 0.7 else cast(bytes, ABSENT) for value in row]


def _packed(rows: list[Row]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(rows))
