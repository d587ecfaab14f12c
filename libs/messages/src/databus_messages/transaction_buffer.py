"""Buffers changes until the end of their transaction: in memory, and in a temporary file if there are many."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import msgspec

from databus_core.events import Action, Begin, Table
from databus_messages.formats.base import Change
from databus_messages.message import Message
from databus_messages.outputs import Output
from databus_messages.routing.partitions import Partition
from databus_wire.packed_rows import PackedRows

#: When the changes in memory are larger than this, they are moved to the file. Their size is that of their events'
#: packed rows and of their statements, plus `_CHANGE_BYTES` for each change. As Python objects, short values take up to
#: twenty times as much memory.
_MEMORY_BYTES = 2**20
#: bytes that count for each change besides those of its rows and its statement
_CHANGE_BYTES = 500
_LENGTH = struct.Struct(">I")


class _Target(NamedTuple):
    """The fields that many messages have in common; they are kept in memory."""

    output: Output
    partitions: Sequence[Partition]
    table: Table


class _Entry(msgspec.Struct, array_like=True):
    """A change in the file, without its `begin` and the fields of its target."""

    #: index in `TransactionBuffer._targets`
    target: int
    action: Action
    start: int
    end: int
    first: int
    ordinals: list[int]
    rows: msgspec.Raw
    query: bytes | None
    table_id: int
    partial: bool
    refusal: str
    captured: list[int] | None


_encode = msgspec.msgpack.Encoder(enc_hook=list).encode  # for ordinals that are a range, and for PackedRows
_decode = msgspec.msgpack.Decoder(_Entry).decode


class TransactionBuffer:
    """Keeps the changes of one transaction in order."""

    def __init__(self) -> None:
        #: the latest changes
        self._in_memory: list[Message] = []
        #: size in bytes of the changes in memory
        self._size = 0
        #: all earlier changes; None if all are in memory
        self._file: IO[bytes] | None = None
        self._targets: list[_Target] = []

    def __del__(self) -> None:
        """Close the file of a transaction whose end never came."""
        if self._file is not None:
            self._file.close()

    def add(self, messages: Iterable[Message], size: int) -> None:
        """Add the changes that one route makes of an event; `size` is the size of the event's rows in bytes."""
        self._size += size
        for message in messages:
            self._in_memory.append(message)
            self._size += _CHANGE_BYTES
            if isinstance(message.content, Change):
                self._size += len(message.content.query or b"")
        if self._size > _MEMORY_BYTES:
            self._move_to_file()

    def release(self, begin: Begin) -> Iterator[Message]:
        """Yield all changes in order, and remove them."""
        latest, self._in_memory, self._size = self._in_memory, [], 0
        if self._file is not None:
            with self._file as file:
                self._file = None
                yield from self._read(file, begin)
            self._targets.clear()
        yield from latest

    def _move_to_file(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by `release` or `__del__`
        for message in self._in_memory:
            change = message.content
            if not isinstance(change, Change):
                raise TypeError("only changes can be buffered")
            head = (self._target(message, change.table), change.action, change.start, change.end, change.first)
            tail = (change.query, change.table_id, change.partial, change.refusal, change.captured)
            entry = _encode((*head, change.ordinals, change.rows, *tail))
            self._file.write(_LENGTH.pack(len(entry)))
            self._file.write(entry)
        self._in_memory.clear()
        self._size = 0

    def _target(self, message: Message, table: Table) -> int:
        """Return the index of a message's target; a new target is added."""
        for index, known in enumerate(self._targets):
            if (known.output, known.partitions) == (message.output, message.partitions) and known.table is table:
                return index
        self._targets.append(_Target(message.output, message.partitions, table))
        return len(self._targets) - 1

    def _read(self, file: IO[bytes], begin: Begin) -> Iterator[Message]:
        file.seek(0)
        while length := file.read(_LENGTH.size):
            entry = _decode(file.read(*_LENGTH.unpack(length)))
            target = self._targets[entry.target]
            event = (entry.action, entry.start, entry.end, entry.first)
            rows = PackedRows(entry.rows).unpack()
            change = Change(
                *(target.table, begin, *event, entry.ordinals, rows, entry.query),
                table_id=entry.table_id,
                partial=entry.partial,
                refusal=entry.refusal,
                captured=entry.captured,
            )
            yield Message(target.output, target.partitions, change)
