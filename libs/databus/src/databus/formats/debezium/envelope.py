"""The envelope of a change, of pieces: what stays the same for the rows of an event is encoded once for them."""

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
        self.codec = codec
        self.joints = codec.joints(envelope("", STRING, STRING))
        self.operations = {operation: codec.data(STRING)(operation) for operation in "crudt"}
        self._block_joints = codec.joints(TRANSACTION)
        self._id = codec.data(STRING)

    def block(self, transaction: str, total_order: int, data_collection_order: int) -> bytes:
        """Encode a change's place in its transaction."""
        first, second, third, last = self._block_joints
        integer = self.codec.integer
        orders = (second, integer(total_order), third, integer(data_collection_order), last)
        return b"".join((self.codec.present, first, self._id(transaction), *orders))


class EventEnvelope:
    """The envelopes of one event's rows."""

    def __init__(
        self, encoder: EnvelopeEncoder, frame: tuple[bytes, bytes], source: tuple[bytes, bytes], now_ns: int
    ) -> None:
        head, tail = frame
        codec, joints = encoder.codec, encoder.joints
        self._integer, self._null = codec.integer, codec.null
        self._operations = encoder.operations
        self._before, self._after = head + joints[0], joints[1]
        self._before_row, behind_row = joints[2] + source[0], source[1]
        self._behind_row, self._operation = behind_row + joints[3], joints[4]
        times = zip(joints[5:], (now_ns // 1_000_000, now_ns // 1000, now_ns), strict=False)
        pieces = (b"".join((joint, codec.present, codec.integer(time))) for joint, time in times)
        self._end = b"".join((*pieces, joints[8], tail))

    def value(self, operation: str, before: bytes | None, after: bytes | None, row: int, block: bytes | None) -> bytes:
        """Encode the value of a change of the event's row of that number."""
        null = self._null
        return b"".join(
            (
                self._before,
                before or null,
                self._after,
                after or null,
                self._before_row,
                self._integer(row),
                self._behind_row,
                block or null,
                self._operation,
                self._operations[operation],
                self._end,
            )
        )
