"""Buffer and number the transactions of files, before they become messages."""

from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile

import msgspec

from databus_binlog import AnyEvent
from databus_core.events import Begin, Commit, Event, SchemaDefinition, TableDefinition, decode_events, encode_events

#: limit in bytes for a transaction in memory; a larger transaction is buffered in a temporary file
_IN_MEMORY = 1 << 26
#: number of bytes that hold an event's length, before each event in the buffer
_LENGTH = 4


class CompleteTransactions:
    """Buffers each transaction until its Commit, and drops a transaction without a Commit.

    Table and schema definitions are not buffered, because later transactions may refer to them.
    """

    def __init__(self) -> None:
        self._buffer = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - open as long as this object exists
        #: file and offset of the buffered transaction's first change; None if no transaction is buffered
        self.open_since: tuple[str, int] | None = None

    def add(self, events: Iterable[Event], source: AnyEvent) -> Iterator[Event]:
        """Add the events that `source` was translated to; yield definitions and the events of complete transactions."""
        for event in events:
            match event:
                case TableDefinition() | SchemaDefinition():
                    yield event
                    continue
                case Begin():
                    self.drop()
                    self.open_since = source.file, source.start
            data = encode_events([event])
            self._buffer.write(len(data).to_bytes(_LENGTH) + data)
            if isinstance(event, Commit):
                yield from self._read()
                self.drop()

    def drop(self) -> None:
        """Drop the buffered transaction: nothing more of it follows."""
        self._buffer.seek(0)
        self._buffer.truncate()
        self.open_since = None

    def close(self) -> None:
        """Release the buffer."""
        self._buffer.close()

    def _read(self) -> Iterator[Event]:
        self._buffer.seek(0)
        while length := self._buffer.read(_LENGTH):
            yield from decode_events(self._buffer.read(int.from_bytes(length)))


class NumberedTransactions:
    """Numbers transactions from 1, and leaves out transactions without changes.

    The reader also numbers transactions that contain only definitions, such as CREATE DATABASE. These have no messages.
    """

    def __init__(self) -> None:
        self._count = 0
        self._begin: Begin | None = None

    def of(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events; a Begin is yielded only before the first change of its transaction."""
        for event in events:
            match event:
                case Begin():
                    self._begin = event
                case Commit():
                    if self._begin is None:
                        yield event
                case TableDefinition() | SchemaDefinition():
                    yield event
                case _:
                    if self._begin is not None:
                        self._count += 1
                        yield msgspec.structs.replace(self._begin, transaction=self._count)
                        self._begin = None
                    yield event
