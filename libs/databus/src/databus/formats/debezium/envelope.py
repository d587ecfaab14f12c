"""The envelope of a change, of pieces: what stays the same for the rows of an event is encoded once for them."""

from collections.abc import Iterable, Iterator
from itertools import repeat

from databus.formats.debezium.codec import Codec
from databus.formats.debezium.schemas import INT64, STRING, Schema, struct

TRANSACTION = struct("event.block", {"id": STRING, "total_order": INT64, "data_collection_order": INT64}).maybe()
_TIMES = {"ts_ms": INT64.maybe(), "ts_us": INT64.maybe(), "ts_ns": INT64.maybe()}


def envelope(name: str, image: Schema, source: Schema) -> Schema:
    """Describe the value of a change."""
    images = {"before": image, "after": image}
    fields = images | {"source": source, "transaction": TRANSACTION, "op": STRING} | _TIMES
    return struct(name, fields, version=2)


class EnvelopeEncoder:
    """Encodes envelopes; between their fields all have the same."""

    def __init__(self, codec: Codec) -> None:
        self._codec, self._integer, self._null = codec, codec.integer, repeat(codec.null)
        before, after, source, transaction, operation, *times, last = codec.joints(envelope("", STRING, STRING))
        self._before, self._after, self._source = before, repeat(after), source
        self._transaction, self._last = transaction, last
        first, *self._times = [joint + codec.present for joint in times]
        text = codec.data(STRING)
        self._operations = {name: b"".join((operation, text(name), first)) for name in "crudt"}
        self._block, self._id = codec.joints(TRANSACTION), text

    def values(
        self,
        operation: str,
        frame: tuple[bytes, bytes],
        source: tuple[bytes, bytes],
        now_ns: int,
        numbers: Iterable[int],
        *,
        before: Iterable[bytes] | None = None,
        after: Iterable[bytes] | None = None,
        blocks: Iterable[bytes] | None = None,
    ) -> Iterator[bytes]:
        """Encode the values of an event's changes: rows of these numbers, their images, places in the transaction.

        `frame` and `source` are what stands before and behind a value, and the number in the source.
        """
        null, integer, (second, third) = self._null, self._integer, self._times
        milliseconds, microseconds = integer(now_ns // 1_000_000), integer(now_ns // 1000)
        times = (milliseconds, second, microseconds, third, integer(now_ns), self._last)
        end = b"".join((self._operations[operation], *times, frame[1]))
        head = repeat(frame[0] + self._before)
        images = (head, before or null, self._after, after or null)
        sources = (repeat(self._source + source[0]), map(integer, numbers), repeat(source[1] + self._transaction))
        return map(b"".join, zip(*images, *sources, blocks or null, repeat(end), strict=False))

    def block(self, transaction: str, total_order: int, data_collection_order: int) -> bytes:
        """Encode a change's place in its transaction."""
        first, second, third, last = self._block
        orders = (second, self._integer(total_order), third, self._integer(data_collection_order), last)
        return b"".join((self._codec.present, first, self._id(transaction), *orders))
