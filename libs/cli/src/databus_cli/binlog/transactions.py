"""Transactions of files, before they become messages."""

from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile

import msgspec

from databus.events import Begin, Commit, Event, SchemaDefinition, TableDefinition, decode_events, encode_events
from databus_binlog import AnyEvent

#: bytes of a transaction in memory; a larger one is kept in a temporary file
_IN_MEMORY = 1 << 26
_LENGTH = 4  # bytes before each list of events in it


class CompleteTransactions:
    """Holds a transaction back until its Commit, and drops it if there is none.

    Definitions of tables pass at once, for later transactions may refer to them.
    """

    def __init__(self) -> None:
        self._held = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - it lives as long as this
        #: file and offset of the open transaction's first change
        self.open_since: tuple[str, int] | None = None

    def add(self, events: Iterable[Event], source: AnyEvent) -> Iterator[Event]:
        """Take what a binlog event was translated to; yield what is complete."""
        for event in events:
            match event:
                case TableDefinition() | SchemaDefinition():
                    yield event
                    continue
                case Begin():
                    self._clear()
                    self.open_since = source.file, source.start
            data = encode_events([event])
            self._held.write(len(data).to_bytes(_LENGTH) + data)
            if isinstance(event, Commit):
                yield from self._read()
                self._clear()

    def close(self) -> None:
        """Drop what is held."""
        self._held.close()

    def _read(self) -> Iterator[Event]:
        self._held.seek(0)
        while length := self._held.read(_LENGTH):
            yield from decode_events(self._held.read(int.from_bytes(length)))

    def _clear(self) -> None:
        self._held.seek(0)
        self._held.truncate()
        self.open_since = None


class NumberedTransactions:
    """Numbers transactions from 1, and leaves out those without changes.

    The reader counts transactions with nothing but definitions, too, as of CREATE DATABASE; no message is made of them.
    """

    def __init__(self) -> None:
        self._count = 0
        self._begin: Begin | None = None

    def of(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events, a Begin when the first change of its transaction comes."""
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
