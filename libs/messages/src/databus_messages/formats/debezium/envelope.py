"""The envelope of a change, joined from parts: what all rows of an event have in common is encoded once."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from databus_core.events import Row
from databus_messages.formats.debezium.codec import Codec, ImageTemplate, RowEncoder
from databus_messages.formats.debezium.schemas import INT64, STRING, Schema, struct
from databus_wire.templates import Slot, Template

#: the values of an operation: what is before the first image, between two images, then up to the row number, up to the
#: transaction block, and after it
ValueTemplate: TypeAlias = tuple[bytes, bytes | None, Template, Template, Template]

TRANSACTION = struct("event.block", {"id": STRING, "total_order": INT64, "data_collection_order": INT64}).nullable()
_TIMES = {"ts_ms": INT64.nullable(), "ts_us": INT64.nullable(), "ts_ns": INT64.nullable()}


def envelope(name: str, image: Schema, source: Schema) -> Schema:
    """Return the schema of a change's value."""
    images = {"before": image, "after": image}
    fields = images | {"source": source, "transaction": TRANSACTION, "op": STRING} | _TIMES
    return struct(name, fields, version=2)


class EventContext(NamedTuple):
    """What envelopes that are encoded together have in common."""

    #: the bytes before and after a value (`Codec.wrapper`)
    wrapper: tuple[bytes, bytes]
    #: the encoded `source` before and after its row number
    source: tuple[bytes, bytes]
    #: time of encoding, ns since the epoch
    now_ns: int


class EnvelopeEncoder:
    """Encodes the envelopes of all tables, which have the same separators between their fields."""

    def __init__(self, codec: Codec) -> None:
        self._codec, self._integer, self._null = codec, codec.integer, codec.null
        separators = codec.separators(envelope("", STRING, STRING))
        before, after, source, self._transaction, operation, *times, self._end = separators
        present, null = codec.present, codec.null
        created = ImageTemplate(before + null + after + present, None, source)
        updated = ImageTemplate(before + present, after + present, source)
        self._templates = {"c": created, "r": created, "u": updated}
        self._templates["d"] = ImageTemplate(before + present, None, after + null + source)
        self._no_images = b"".join((before, null, after, null, source))
        ts_ms, *self._times = [separator + present for separator in times]
        encode_text = codec.encoder(STRING)
        self._operations = {name: b"".join((operation, encode_text(name), ts_ms)) for name in "crudt"}
        self._block_separators, self._encode_text = codec.separators(TRANSACTION), encode_text

    def values(
        self,
        images: RowEncoder,
        operation: str,
        context: EventContext,
        rows: Sequence[Row],
        numbers: Sequence[int],
        blocks: Sequence[bytes] | None = None,
    ) -> list[bytes]:
        """Encode the values of an event's changes from their rows, row numbers and, if any, transaction blocks."""
        before, separator, middle = self._templates[operation]
        template = ImageTemplate(context.wrapper[0] + before, separator, middle + context.source[0])
        after_number, end = self._tail(operation, context)
        tails = [after_number + block + end for block in blocks] if blocks else after_number + self._null + end
        return images.images(rows, numbers, template, tails)

    def template(
        self,
        operation: str,
        wrapper: tuple[bytes, bytes],
        source: tuple[Sequence[bytes | Slot], Sequence[bytes | Slot]],
        *,
        has_blocks: bool,
    ) -> ValueTemplate:
        """Return the template of the values of an operation; only for JSON."""
        before, separator, middle = self._templates[operation]
        ts_us, ts_ns = self._times
        times = self._operations[operation], Slot.NOW_MS, ts_us, Slot.NOW_US, ts_ns, Slot.NOW_NS
        tail = Template([*source[1], self._transaction + (b"" if has_blocks else self._null)])
        end = Template([*times, self._end + wrapper[1]])
        return wrapper[0] + before, separator, Template([middle, *source[0]]), tail, end

    def truncation(self, context: EventContext) -> bytes:
        """Encode the value of a TRUNCATE, which has no rows."""
        after_number, end = self._tail("t", context)
        head = context.wrapper[0], self._no_images, context.source[0]
        return b"".join((*head, self._integer(0), after_number, self._null, end))

    def _tail(self, operation: str, context: EventContext) -> tuple[bytes, bytes]:
        """Encode everything after the row number in two parts; the transaction block is between them."""
        now_ns, integer, (ts_us, ts_ns) = context.now_ns, self._integer, self._times
        times = (integer(now_ns // 1_000_000), ts_us, integer(now_ns // 1000), ts_ns, integer(now_ns))
        end = b"".join((self._operations[operation], *times, self._end, context.wrapper[1]))
        return context.source[1] + self._transaction, end

    @property
    def block_separators(self) -> tuple[bytes, bytes, bytes, bytes]:
        """What is in a transaction block before the id, the two ordinals, and at its end; only for JSON."""
        first, second, third, end = self._block_separators
        return first, second, third, end

    def block(self, transaction: str, total_order: int, data_collection_order: int) -> bytes:
        """Encode the transaction block of a change."""
        first, second, third, end = self._block_separators
        orders = (second, self._integer(total_order), third, self._integer(data_collection_order), end)
        return b"".join((self._codec.present, first, self._encode_text(transaction), *orders))
