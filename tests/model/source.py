"""A source with two hosts, which have the same transactions in different orders, and the events that a reader sends."""

from base64 import b64decode
from collections.abc import Iterable, Iterator

import msgspec

from databus_binlog import GtidSet, Position
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    Decided,
    Event,
    Heartbeat,
    Prepared,
    RowsEvent,
    Start,
    Table,
    TableDefinition,
)
from databus_core.progress import Progress

#: number of the transaction, number of the row in it
Row = tuple[int, int]

#: number of rows of a transaction that is an XA COMMIT, if there is an XA PREPARE for it
_XA_ROWS = 3
_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_TABLE = Table(schema="s", name="t", columns=(Column(name="id", type="varchar", raw_type="varchar(20)"),))
_pack = msgspec.msgpack.Encoder().encode


class Source:
    """The source's transactions, numbered from 1; each has some captured rows, or none.

    Of those without rows, the ones with an odd number are an XA PREPARE. Those with most rows are an XA COMMIT of the
    latest XA PREPARE that is open, if there is one.
    """

    def __init__(self) -> None:
        #: number of captured rows in each transaction
        self.rows: list[int] = []
        #: for each position at which a reader started the pipeline, the transactions before it
        self.starts: list[set[int]] = []

    def order(self, host: int) -> list[int]:
        """Return the transactions of a host in its order. Host 1 swaps adjacent ones, and may lag by one."""
        if host == 0:
            return list(range(1, len(self.rows) + 1))
        return [number for pair in range(1, len(self.rows), 2) for number in (pair + 1, pair)]

    def captured(self, numbers: Iterable[int]) -> set[int]:
        return {number for number in numbers if self.rows[number - 1]}

    def rows_of(self, number: int) -> list[Row]:
        return [(number, row) for row in range(self.rows[number - 1])]

    def prepares(self) -> dict[int, int]:
        """Map each XA COMMIT to its XA PREPARE, which precedes it on both hosts."""
        found: dict[int, int] = {}
        for number, rows in enumerate(self.rows, 1):
            earlier = [n for n in range(1, number - 1) if self._is_prepare(n) and n not in found.values()]
            if rows == _XA_ROWS and earlier:
                found[number] = earlier[-1]
        return found

    def _is_prepare(self, number: int) -> bool:
        return number % 2 == 1 and not self.rows[number - 1]

    def _knows(self, number: int, listed: set[str]) -> bool:
        """Return whether a reader has the rows of an XA COMMIT: it has seen the XA PREPARE, or can search it.

        A reader searches any transaction that it does not know. Here it does so only for those before the pipeline's
        start, so that the progress has to list all others.
        """
        prepare = self.prepares().get(number)
        return prepare is None or str(prepare) in listed or any(prepare in start for start in self.starts)

    def latest(self, host: int) -> Position:
        self.starts.append(set(self.order(host)))
        return Position(_set_text(self.order(host)), f"host{host}.1", 4)

    def read(self, host: int, progress: Progress) -> Iterator[Event | None]:
        """Yield the events that a reader sends from a host's log, after the progress; None at the log's current end."""
        start = progress.position or self.latest(host)
        executed = numbers_in(start)
        yield Start(start, f"host{host}", "mysql", 1, in_order=False)
        yield TableDefinition(_TABLE)
        ordinal, passed = progress.transaction, list[int]()
        listed = {each.xid for each in progress.prepared}
        while True:
            number = next((number for number in self.order(host) if number not in executed), None)
            if number is None:
                yield Heartbeat(_set_text(passed), f"host{host}.1", len(executed), 1) if passed else None
                passed = []
                continue
            if self._is_prepare(number):
                listed.add(str(number))
                yield Prepared(str(number), "", _set_text(passed), f"host{host}.1", len(executed), 1)
                passed = []
            executed.add(number)
            passed.append(number)
            if self.rows[number - 1] and self._knows(number, listed):
                ordinal += 1
                yield from self._transaction(host, ordinal, number, passed)
                passed = []

    def _transaction(self, host: int, ordinal: int, number: int, passed: list[int]) -> Iterator[Event]:
        yield Begin(ordinal, f"{_UUID}:{number}", f"host{host}.1", 1, 1, 1)
        for _, row in self.rows_of(number):
            image = _pack([[b"%d:%d" % (number, row)]])
            yield RowsEvent(_TABLE.fingerprint, Action.INSERT, row, number, number, msgspec.Raw(image))
        if prepare := self.prepares().get(number):
            yield Decided(str(prepare))
        yield Commit(_set_text(passed), f"host{host}.1", number, None)


def numbers_in(position: Position) -> set[int]:
    """Return the transactions in a position's GTID set, which has gaps only near its end."""
    executed, numbers = GtidSet.parse("mysql", position.gtid_set), set[int]()
    while len(numbers) < 64 and f"{_UUID}:{len(numbers) + 1}" in executed:
        numbers.add(len(numbers) + 1)
    return numbers | {
        number for number in range(len(numbers) + 1, len(numbers) + 16) if f"{_UUID}:{number}" in executed
    }


def row_of(cells: list[str]) -> Row:
    """Return the source's row for the values of a published row."""
    number, _, row = b64decode(cells[0]).partition(b":")
    return int(number), int(row)


def _set_text(numbers: Iterable[int]) -> str:
    return ":".join([_UUID, *map(str, sorted(numbers))]) if numbers else ""
