"""The envelope of a change, of pieces: what stays the same for the rows of an event is encoded once for them."""

from collections.abc import Sequence
from typing import NamedTuple

from databus.events import Row
from databus_messages.formats.debezium.codec import Around, Codec, RowEncoder
from databus_messages.formats.debezium.schemas import INT64, STRING, Schema, struct

TRANSACTION = struct("event.block", {"id": STRING, "total_order": INT64, "data_collection_order": INT64}).maybe()
_TIMES = {"ts_ms": INT64.maybe(), "ts_us": INT64.maybe(), "ts_ns": INT64.maybe()}


def envelope(name: str, image: Schema, source: Schema) -> Schema:
    """Describe the value of a change."""
    images = {"before": image, "after": image}
    fields = images | {"source": source, "transaction": TRANSACTION, "op": STRING} | _TIMES
    return struct(name, fields, version=2)


class Event(NamedTuple):
    """What the envelopes of one event have in common: what stands before and behind a value, the row's number in it."""

    frame: tuple[bytes, bytes]
    source: tuple[bytes, bytes]
    now_ns: int


class EnvelopeEncoder:
    """Encodes envelopes; between their fields all have the same."""

    def __init__(self, codec: Codec) -> None:
        self._codec, self._integer, self._null = codec, codec.integer, codec.null
        joints = codec.joints(envelope("", STRING, STRING))
        before, after, source, self._transaction, operation, *times, self._last = joints
        present, null = codec.present, codec.null
        created = Around(before + null + after + present, None, source)
        updated = Around(before + present, after + present, source)
        self._around = {"c": created, "r": created, "u": updated}
        self._around["d"] = Around(before + present, None, after + null + source)
        self._nothing = b"".join((before, null, after, null, source))
        milliseconds, *self._times = [joint + present for joint in times]
        text = codec.data(STRING)
        self._operations = {name: b"".join((operation, text(name), milliseconds)) for name in "crudt"}
        self._block, self._id = codec.joints(TRANSACTION), text

    def values(
        self,
        images: RowEncoder,
        operation: str,
        event: Event,
        rows: Sequence[Row],
        numbers: Sequence[int],
        blocks: Sequence[bytes] | None = None,
    ) -> list[bytes]:
        """Encode the values of an event's changes: their rows, the numbers of these, places in the transaction."""
        (head, _), (before_number, _), _ = event
        before, joint, middle = self._around[operation]
        behind, last = self._tail(operation, event)
        tails = [behind + block + last for block in blocks] if blocks else behind + self._null + last
        return images.numbered(rows, numbers, Around(head + before, joint, middle + before_number), tails)

    def truncation(self, event: Event) -> bytes:
        """Encode the value of a change that has no rows."""
        (head, _), (before_number, _), _ = event
        behind, last = self._tail("t", event)
        return b"".join((head, self._nothing, before_number, self._integer(0), behind, self._null, last))

    def _tail(self, operation: str, event: Event) -> tuple[bytes, bytes]:
        """Encode what stands behind the row's number, around its place in the transaction."""
        (_, tail), (_, behind_number), now_ns = event
        integer, (microseconds, nanoseconds) = self._integer, self._times
        times = (integer(now_ns // 1_000_000), microseconds, integer(now_ns // 1000), nanoseconds, integer(now_ns))
        return behind_number + self._transaction, b"".join((self._operations[operation], *times, self._last, tail))

    def block(self, transaction: str, total_order: int, data_collection_order: int) -> bytes:
        """Encode a change's place in its transaction."""
        first, second, third, last = self._block
        orders = (second, self._integer(total_order), third, self._integer(data_collection_order), last)
        return b"".join((self._codec.present, first, self._id(transaction), *orders))
