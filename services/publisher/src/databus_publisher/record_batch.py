"""A Kafka record batch that aiokafka sends as if it were its own, made in a sixth of the time (ADR 8)."""

import struct
import time

import google_crc32c
from aiokafka.record.util import calc_crc32c

from databus.formats.base import Headers, PlainRecords
from databus_wire.kafka_records import RecordPacker

#: baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp, maxTimestamp,
#: producerId, producerEpoch, baseSequence, records (https://kafka.apache.org/documentation/#recordbatch)
_HEAD = struct.Struct(">qiibIhiqqqhii")
_BEHIND_LENGTH = 12
_CRC = struct.Struct(">I")
_CRC_PLACE = 17
_MAGIC = 2
_TRANSACTIONAL = 0x10
#: in C, which Google's package has for most platforms; it is five times as fast as aiokafka's
_crc32c = google_crc32c.value if google_crc32c.implementation == "c" else calc_crc32c


class RecordBatch:
    """Stands where `aiokafka.producer.message_accumulator.BatchBuilder` does: byte for byte the same, uncompressed.

    What aiokafka calls of that is `close`, `closed`, `record_count`, `_set_producer_state` and `_build`.
    """

    def __init__(self, limit: int, *, transactional: bool) -> None:
        self._packer = RecordPacker(_HEAD.size, limit)
        self._attributes = _TRANSACTIONAL if transactional else 0
        #: id, epoch, sequence
        self._producer = (-1, -1, 0)
        self._built: bytearray | None = None

    def append(self, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        """Put a record behind the others; False if there is no room (there is for the first) or it is closed."""
        return self._packer.append(_now_ms(), key, value, headers)

    def extend(self, records: PlainRecords, first: int = 0) -> int:
        """Put records behind the others, from the first on and up to one that has no room; tells how many."""
        return self._packer.extend(_now_ms(), records.keys, records.values, first)

    def size(self) -> int:
        """Count the bytes."""
        return self._packer.size

    def record_count(self) -> int:
        """Count the records."""
        return self._packer.count

    def close(self) -> None:
        """Take no more records."""
        self._packer.close()

    def closed(self) -> bool:
        """Tell whether no more records are taken."""
        return self._packer.closed

    def _set_producer_state(self, producer_id: int, epoch: int, sequence: int) -> None:
        self._producer = (producer_id, epoch, sequence)
        self._built = None

    def _build(self) -> bytearray:
        if self._built is None:
            packer, built = self._packer, self._packer.packed()
            length, last, times = len(built) - _BEHIND_LENGTH, packer.count - 1, (packer.first_ms, packer.last_ms)
            described = (self._attributes, last, *times, *self._producer, packer.count)
            _HEAD.pack_into(built, 0, 0, length, -1, _MAGIC, 0, *described)
            with memoryview(built) as view:
                checksum = _crc32c(bytes(view[_CRC_PLACE + _CRC.size :]))
            _CRC.pack_into(built, _CRC_PLACE, checksum)
            self._built = built
        return self._built


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
