"""What happened in files is told to a format, as the publisher tells it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile

import msgspec

from databus.cli.binlog.changes import Changes, Told
from databus.events import Action, Begin, Commit, QueryEvent, RowsEvent
from databus.formats import AnyFormat
from databus.formats.base import Change, End, Record, Statement
from databus_binlog import AnyEvent, TableMap
from databus_wire.json_base64 import count_rows

#: bytes of a transaction in memory; more of it is held in a temporary file
_IN_MEMORY = 1 << 26

_SIZE = 4  # bytes before each event that is held, which tell its length

_encode_held = msgspec.msgpack.Encoder().encode
_decode_held = msgspec.msgpack.Decoder(RowsEvent | QueryEvent).decode


class Teller:
    """Tells a format what happens as it comes, and gives the records that it makes of it."""

    def __init__(self, to: AnyFormat, changes: Changes, left_out: Counter[str]) -> None:
        self._format = to
        self._changes = changes
        self._left_out = left_out
        self._begin: Begin | None = None
        #: row changes of the transaction
        self._rows = 0

    def tell(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[Record]:
        """Tell what an event of a file changed."""
        for told in self._changes.of(event, tables):
            yield from self._tell(told)

    def finish(self) -> None:
        """Take note that nothing more comes of the transaction that is open."""
        if self._begin is not None:
            self._give_up()
            self._begin = None

    def _give_up(self) -> None:
        self._left_out["ends of transactions that the files do not tell"] += 1

    def _tell(self, told: Told) -> Iterator[Record]:
        match told:
            case Begin():
                self.finish()
                self._begin, self._rows = told, 0
            case RowsEvent():
                if not self._rows:
                    yield from self._format.begin(self._begun())
                self._rows += _count(told)
                yield from self._change(told, None)
            case QueryEvent():
                yield from self._statement(told)
            case Commit():
                yield from self._end(self._ended(told))

    def _change(self, event: RowsEvent, end: End | None) -> Iterator[Record]:
        yield from self._format.change(
            Change(
                table=self._changes.tables[event.table],
                begin=self._begun(),
                action=event.action,
                start=event.start,
                end=event.end,
                first=event.row,
                ordinals=range(event.row, event.row + _count(event)),
                rows=self._format.rows_of(event),
                query=event.query,
                transaction_end=end,
            )
        )

    def _statement(self, event: QueryEvent) -> Iterator[Record]:
        tables = self._changes.tables
        records = list(
            self._format.statement(
                Statement(
                    table=tables[event.table],
                    begin=self._begun(),
                    action=event.action,
                    query=event.query,
                    start=event.start,
                    end=event.end,
                    before=tables.get(event.before),
                )
            )
        )
        if not records:
            self._left_out["statements"] += 1
        yield from records

    def _end(self, end: End) -> Iterator[Record]:
        if self._rows:  # a statement has neither beginning nor end
            yield from self._format.end(self._begun(), end)
        self._begin = None

    def _ended(self, commit: Commit) -> End:
        return End(commit.xid, commit.end, self._rows)

    def _begun(self) -> Begin:
        if self._begin is None:
            raise AssertionError("changes come behind a Begin")
        return self._begin


class Holding(Teller):
    """Tells a transaction when its end is known."""

    def _tell(self, told: Told) -> Iterator[Record]:
        match told:
            case Begin():
                yield from super()._tell(told)
                self._held = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 – it is closed with the transaction
            case RowsEvent() | QueryEvent():
                if isinstance(told, RowsEvent):
                    self._rows += _count(told)
                data = _encode_held(told)
                self._held.write(len(data).to_bytes(_SIZE) + data)
            case Commit():
                end = self._ended(told)
                if self._rows:
                    yield from self._format.begin(self._begun())
                for event in self._read():
                    yield from self._statement(event) if isinstance(event, QueryEvent) else self._change(event, end)
                yield from self._end(end)

    def _read(self) -> Iterator[RowsEvent | QueryEvent]:
        with self._held as held:
            held.seek(0)
            while size := held.read(_SIZE):
                yield _decode_held(held.read(int.from_bytes(size)))

    def _give_up(self) -> None:
        self._left_out["rows of transactions without an end"] += self._rows
        self._held.close()


def _count(event: RowsEvent) -> int:
    """Count the row changes."""
    return count_rows(event.rows) // (2 if event.action is Action.UPDATE else 1)
