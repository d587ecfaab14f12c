"""Ordinary transactions in compiled code: the same bytes as by the translator, whatever comes between them."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from databus_binlog import AnyEvent, Decoder, Flavor, Heartbeat, TableMap, Xid, read_file
from databus_binlog.events import Events, Rows, encode_event
from databus_changes.fast_path import FastPath
from databus_changes.tables import TableName
from databus_core.errors import FatalError
from databus_core.events import Begin, Commit, Event, RowsEvent, StateRecord, decode_events
from databus_core.settings import Source
from unit.changes.conftest import FIXTURES, Log, Translation
from unit.changes.test_parked import Aside

GOLDEN = Path(__file__).parents[2] / "golden"
_encode = msgspec.msgpack.Encoder().encode
LOG = Log()
#: tables that ordinary rows have, one that is parked, and one whose columns the binlog does not name
ORDINARY = [LOG.table(), LOG.table("orders", "id a b"), LOG.table("member", schema="club")]
PARKED, NAMELESS = LOG.table("parked", "id a"), LOG.nameless("unknown", 2)
TABLES = {table.fingerprint: table for table in (*ORDINARY, PARKED, NAMELESS)}
#: ends of files' chunks: a read of the socket may end with any event
SIZES = [1, 300, 5_000]


class Reserve(Aside):
    """Parks like `Aside`, and skips the transactions whose GTIDs end with 7 while `skips`."""

    def __init__(self, skips: bool) -> None:
        super().__init__()
        self.skips = skips
        self.parked |= {("shop", "parked")}

    def open(self, gtid: str, place: object) -> bool:
        return self.skips and gtid.endswith("7")

    def may_concern(self, place: object) -> bool:
        return self.skips or super().may_concern(place)

    async def end_skip(self) -> list[Event]:
        return [*await self.park(), StateRecord(b"skip", None)]


def transactions(translation: Translation, needed: Collection[TableName] = ()) -> FastPath:
    """Return the path beside a translator, except for tables that are `needed` as objects."""
    return FastPath(
        translation.translator,
        translation.flavor,
        translation.tracker,
        gtids=translation.gtids,
        needed=needed.__contains__,
    )


class Way:
    """One of the two ways through the reader: its translator, and what it has sent."""

    def __init__(self, translation: Translation, *, compiled: bool) -> None:
        self.translation = translation
        self.translator = translation.translator
        self.sent = b""
        self.error = ""
        #: transactions that were taken in compiled code
        self.taken = 0
        self._fast_path: FastPath | None = transactions(translation) if compiled else None

    async def forward(self, chunk: Events, *, size: int, heartbeat: bool) -> None:
        """Forward a chunk as the reader does."""
        if self.error:
            return
        try:
            if self._fast_path is None:
                await self._translate(list(chunk), chunk.tables)
            else:
                await self._alternate(self._fast_path, chunk, size)
        except FatalError as error:
            self._send(self.translator.rest())
            self.error = str(error)
        if heartbeat and (beat := self.translator.reached.take_heartbeat()):
            self._send([beat])

    async def _alternate(self, taking: FastPath, chunk: Events, size: int) -> None:
        taking.begin(chunk)
        while not taking.done:
            if taken := taking.take(size):
                self.sent += taken.encoded
                assert taken.events == len(decode_events(_array(taken.encoded, taken.events)))
                self.translator.rows += taken.rows
                self.translator.transactions += taken.transactions
                self.taken += taken.transactions
            elif not taking.done:
                await self._translate(taking.group(), taking.tables)

    async def release(self) -> None:
        """Forward what was kept for a next chunk that does not come, as while a backfill runs."""
        if self._fast_path is not None and not self.error:
            try:
                await self._translate(self._fast_path.release(chunk_of([])), self._fast_path.tables)
            except FatalError as error:
                self._send(self.translator.rest())
                self.error = str(error)

    async def _translate(self, events: Sequence[AnyEvent], tables: Mapping[str, TableMap]) -> None:
        self._send(await self.translator.translate(events, tables))

    def _send(self, events: Any) -> None:
        self.sent += b"".join(map(_encode, events))

    @property
    def state(self) -> dict[str, object]:
        """Everything that is counted on the way."""
        reached = self.translator.reached
        return {
            "reached": (reached.transaction, reached.place, reached.time_us, reached._moved),
            "executed": reached.executed.all(),
            "counted": (self.translator.rows, self.translator.transactions),
            "open": self.translator.in_transaction,
            "error": self.error,
            "doubts": self.translation.doubts,
        }


def _array(encoded: bytes, events: int) -> bytes:
    return b"".join((b"\xdd", events.to_bytes(4, "big"), encoded))


def chunk_of(events: Sequence[AnyEvent]) -> Events:
    return Events(_array(b"".join(map(encode_event, events)), len(events)), len(events), 0, TABLES)


# --- random streams ---------------------------------------------------------------------------------------------------

values = st.none() | st.binary(max_size=40) | st.sampled_from([b"", b"x" * 255, b"x" * 256, b"x" * 70_000])


class Groups:
    """Draws groups of events."""

    def __init__(self, draw: Any, flavor: Flavor) -> None:
        self._draw, self._flavor = draw, flavor
        self._log = Log()
        self._prepared: list[str] = []
        self._number = 0

    def _one_of(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def draw(self) -> Iterator[AnyEvent]:
        ordinary = self._ordinary
        kinds = [ordinary] * 8 + [self._empty] * 4
        kinds += self._odd_rows, self._statement, self._xa, self._between, self._other_end, self._without_end
        yield from self._one_of(*kinds)()

    def _opening(self, **options: Any) -> Iterator[AnyEvent]:
        self._number += self._one_of(1, 1, 1, 2, 40)
        number = self._number
        gtid = f"{self._one_of(0, 0, 0, 7)}-1-{number}"
        if self._flavor == "mysql":
            gtid = f"{Log.uuid}:{self._one_of('', '', '', 'tag:')}{number}"
        gtid = self._one_of(*[gtid] * 9, "")
        opened = self._log.gtid(gtid, us=self._one_of(0, 1_700_000_000_123_456), **options)
        if options.get("thread"):
            opened = msgspec.structs.replace(opened, thread_id=options["thread"])
        yield msgspec.structs.replace(opened, time=self._one_of(0, 127, 1_700_000_000))

    def _begin(self) -> Iterator[AnyEvent]:
        yield from self._opening()
        if self._flavor == "mysql":
            yield self._log.query("BEGIN", thread=self._one_of(0, 9, 70_000))

    def _rows(self, table: TableMap | None = None, *, complete: bool = True) -> Iterator[AnyEvent]:
        table = table or self._one_of(*ORDINARY)
        if self._one_of(False, False, True):
            yield self._log.rows_query(self._one_of("", "INSERT", "x" * 300))
        action = self._one_of("insert", "update", "delete")
        count = self._one_of(1, 2, 3, 20) * (2 if action == "update" else 1)
        rows: Rows = self._log.rows(table, action, count, complete=complete)
        if complete:
            image = st.lists(values, min_size=len(table.columns), max_size=len(table.columns))
            images = [self._draw(image) for _ in range(min(count, 2))]
            packed = _encode([images[index % len(images)] for index in range(count)])
            rows = msgspec.structs.replace(rows, rows=msgspec.Raw(packed), server_id=self._one_of(1, 2, 300))
        yield rows

    def _ordinary(self) -> Iterator[AnyEvent]:
        yield from self._begin()
        for _ in range(self._one_of(1, 1, 1, 2, 3)):
            yield from self._rows()
        yield self._log.xid(self._one_of(0, 5, 2**40))

    def _empty(self) -> Iterator[AnyEvent]:
        yield from self._begin()
        if self._one_of(False, True):
            yield self._log.rows_query("of a table that is not captured")
        yield self._log.xid()

    def _odd_rows(self) -> Iterator[AnyEvent]:
        yield from self._begin()
        odd = self._one_of("parked", "nameless", "oversized", "partial")
        yield from self._rows()
        if odd == "oversized":
            yield self._log.oversized(self._one_of(*ORDINARY))
        else:
            table = {"parked": PARKED, "nameless": NAMELESS, "partial": ORDINARY[0]}[odd]
            yield from self._rows(table, complete=odd != "partial")
        yield self._log.xid()

    def _statement(self) -> Iterator[AnyEvent]:
        """Change a table, or a phase of MariaDB's ALTER."""
        phase = self._one_of("", "", "start", "commit") if self._flavor == "mariadb" else ""
        yield from self._opening(standalone=self._flavor == "mariadb", alter=phase)
        table = self._one_of("t", "orders", "other")
        ddl = self._one_of("ALTER TABLE {} COMMENT 'new'", "DROP TABLE {}", "CREATE TABLE {} (id INT PRIMARY KEY)")
        yield self._log.query(ddl.format(table))

    def _xa(self) -> Iterator[AnyEvent]:
        if self._prepared and self._one_of(False, True):
            yield from self._opening(standalone=self._flavor == "mariadb")
            yield self._log.query(f"XA {self._one_of('COMMIT', 'ROLLBACK')} {self._prepared.pop(0)}")
            return
        xid = f"X'{self._number:04x}',X'',1"
        if self._flavor == "mysql":
            yield from self._opening()
            yield self._log.query(f"XA START {xid}")
        else:
            yield from self._opening(xa=True)
        yield from self._rows()
        yield self._log.query(f"XA END {xid}")
        one_phase = self._one_of(False, True)
        yield self._log.xa_prepare(xid, one_phase=one_phase)
        if not one_phase:
            self._prepared.append(xid)

    def _between(self) -> Iterator[AnyEvent]:
        yield self._one_of(self._log.rotate("binlog.8"), self._log.rotate("binlog.8", artificial=True), self._beat())

    def _beat(self) -> AnyEvent:
        beat = self._log.xid()
        return Heartbeat(0, 1, beat.file, beat.end, beat.end)

    def _other_end(self) -> Iterator[AnyEvent]:
        yield from self._begin()
        yield from self._rows()
        yield self._log.query(self._one_of("COMMIT", "ROLLBACK", "SAVEPOINT a"))
        yield self._log.xid()

    def _without_end(self) -> Iterator[AnyEvent]:
        yield from self._begin()
        yield from self._rows()


@st.composite
def streams(draw: Any) -> tuple[Flavor, list[AnyEvent], list[int]]:
    flavor: Flavor = draw(st.sampled_from(["mysql", "mariadb"]))
    groups = Groups(draw, flavor)
    events = [event for _ in range(draw(st.integers(2, 14))) for event in groups.draw()]
    cuts = draw(st.lists(st.integers(1, len(events)), max_size=5))
    return flavor, events, sorted({0, *cuts, len(events)})


@settings(derandomize=True, max_examples=150, deadline=None)
@given(streams(), st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from(SIZES))
def test_random_streams_have_the_same_bytes_as_by_the_translator(
    stream: Any, gtids: bool, parks: bool, skips: bool, partial: bool, size: int
) -> None:
    flavor, events, cuts = stream

    async def both() -> list[Way]:
        ways = []
        for compiled in (False, True):
            parking = Reserve(skips) if parks else None
            translation = Translation(flavor, lenient=True, gtids=gtids, partial=partial, parking=parking)
            for table in TABLES.values():
                translation.tracker.describe(table)
            way = Way(translation, compiled=compiled)
            for number, (start, end) in enumerate(pairwise(cuts)):
                # Inside of a transaction that is kept, a heartbeat may have what the Commit has otherwise.
                heartbeat = number % 2 == 1 and isinstance(events[end - 1], Xid)
                await way.forward(chunk_of(events[start:end]), size=size, heartbeat=heartbeat)
            await way.release()
            ways.append(way)
        return ways

    pure, compiled = asyncio.run(both())
    assert compiled.sent == pure.sent
    assert compiled.state == pure.state


# --- streams of servers -----------------------------------------------------------------------------------------------

FILES = sorted([*GOLDEN.glob("*.bin"), *FIXTURES.glob("*/*.bin")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
async def test_logs_of_servers_have_the_same_bytes_as_by_the_translator(path: Path) -> None:
    flavor: Flavor = "mariadb" if "mariadb" in str(path) else "mysql"
    ways = []
    for compiled in (False, True):
        source = Source(include=["*.*"])
        translation = Translation(flavor, lenient=True, source=source)
        way = Way(translation, compiled=compiled)
        decoder = Decoder(
            file=path.name, wanted=source.captures, describe=translation.tracker.describe, by_statement=True
        )
        with path.open("rb") as file:
            for chunk in read_file(file.read, decoder):
                await way.forward(chunk, size=2000, heartbeat=False)
        ways.append(way)
    pure, compiled = ways
    assert compiled.sent == pure.sent
    assert compiled.state == pure.state
    assert path.parent != GOLDEN or compiled.taken


# --- what is taken ----------------------------------------------------------------------------------------------------


def ordinary(log: Log, table: TableMap) -> Sequence[AnyEvent]:
    return log.gtid(), log.query("BEGIN"), log.rows(table), log.xid()


@pytest.fixture
def way() -> Way:
    translation = Translation()
    for table in ORDINARY:
        translation.tracker.describe(table)
    return Way(translation, compiled=True)


async def test_the_first_rows_of_a_table_are_translated_because_its_definition_precedes_them(
    log: Log, way: Way
) -> None:
    events = [event for _ in range(3) for event in ordinary(log, ORDINARY[0])]
    await way.forward(chunk_of(events), size=1 << 20, heartbeat=False)
    assert (way.taken, way.translator.transactions, way.translator.rows) == (2, 3, 3)


async def test_an_entry_ends_with_a_transaction(log: Log, way: Way) -> None:
    taking = transactions(way.translation)
    await way.forward(chunk_of(ordinary(log, ORDINARY[0])), size=1, heartbeat=False)
    taking.begin(chunk_of([*ordinary(log, ORDINARY[0]), *ordinary(log, ORDINARY[0])]))
    taken = taking.take(1)
    assert taken is not None
    assert list(map(type, decode_events(_array(taken.encoded, taken.events)))) == [Begin, RowsEvent, Commit]
    assert (taken.transactions, taking.done) == (1, False)


async def test_a_transaction_that_a_chunk_cuts_is_taken_with_the_next_chunk(log: Log, way: Way) -> None:
    await way.forward(chunk_of(ordinary(log, ORDINARY[0])), size=1, heartbeat=False)
    cut = ordinary(log, ORDINARY[0])
    sent = way.sent
    await way.forward(chunk_of(cut[:3]), size=1, heartbeat=False)
    assert way.sent == sent
    await way.forward(chunk_of(cut[3:]), size=1, heartbeat=False)
    assert (way.taken, way.translator.transactions) == (1, 2)


async def test_the_beginning_of_a_transaction_is_returned_when_the_stream_ends(log: Log, way: Way) -> None:
    await way.forward(chunk_of(ordinary(log, ORDINARY[0])), size=1, heartbeat=False)
    taking, cut = transactions(way.translation), ordinary(log, ORDINARY[0])
    taking.begin(chunk_of(cut[:3]))
    assert (taking.take(1), taking.done) == (None, True)
    assert taking.rest() == [*cut[:3]]
    assert taking.rest() == []


async def test_a_chunk_is_returned_behind_what_was_kept_when_a_backfill_has_begun_meanwhile(log: Log, way: Way) -> None:
    await way.forward(chunk_of(ordinary(log, ORDINARY[0])), size=1, heartbeat=False)
    taking, cut = transactions(way.translation), [*ordinary(log, ORDINARY[0]), *ordinary(log, ORDINARY[1])]
    taking.begin(chunk_of(cut[:3]))
    assert (taking.take(1), taking.done) == (None, True)
    assert taking.release(chunk_of(cut[3:])) == cut
    assert taking.rest() == []


async def test_transactions_of_tables_that_others_need_are_translated(log: Log, way: Way) -> None:
    await way.forward(chunk_of([*ordinary(log, ORDINARY[0]), *ordinary(log, ORDINARY[1])]), size=1, heartbeat=False)
    taking = transactions(way.translation, {("shop", "t")})
    taking.begin(chunk_of([*ordinary(log, ORDINARY[1]), *ordinary(log, ORDINARY[0])]))
    taken = taking.take(1 << 20)
    assert taken is not None
    assert (taken.transactions, taking.take(1 << 20), len(taking.group())) == (1, None, 4)
    assert taking.done
