"""Decompresses TRANSACTION_PAYLOAD (MySQL ≥ 8.0.20), one event with all events of a transaction after its GTID.

Layout: fields of type, length, value, and after them the payload (libs/mysql/binlog/event/codecs in MySQL's source).
"""

from __future__ import annotations

import zlib

import zstandard

from databus_binlog.cursor import Cursor

#: Bytes of the event that are decompressed at once: zstd can turn one byte into 32 KiB, so a piece yields up to 16 MiB.
PIECE = 512
_MAX_FIELDS_SIZE = 64  # bytes of all fields together
_END, _PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)  # types of fields
_KNOWN_FIELDS = {_PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE}
_ZSTD, _NONE = 0, 255  # kinds of compression
_CHECKSUM_BYTES = 4
_HELD_BACK = 64  # bytes of the payload that are kept back


class TransactionPayload:
    """Takes the event's body in pieces and returns the bytes of the events inside.

    The last bytes are kept back until the event's checksum is verified. Without them the transaction has no commit, so
    a damaged transaction never takes effect.
    """

    def __init__(self, header: bytes, size: int, *, checksum: bool) -> None:
        self._left = size - (_CHECKSUM_BYTES if checksum else 0)
        self._crc = zlib.crc32(header) if checksum else None
        self._checksum = b""
        self._fields: bytes | None = b""  # the bytes of the fields so far; None once they are read
        self._decompressor: zstandard.ZstdDecompressionObj | None = None
        self._held = b""
        self._announced: dict[int, int] = {}
        self._compressed = self._uncompressed = 0

    def feed(self, piece: bytes) -> bytes:
        """Take the next bytes of the event, at most PIECE; return bytes of the events inside.

        Raises ValueError or LookupError if the bytes are malformed.
        """
        body, checksum = piece[: self._left], piece[self._left :]
        self._left -= len(body)
        self._checksum += checksum
        if self._crc is not None:
            self._crc = zlib.crc32(body, self._crc)
        if self._fields is not None:
            self._fields += body
            body = self._read_fields(self._fields)
        body = self._held + body
        self._held = body[-_HELD_BACK:]
        return self._decompress(body[:-_HELD_BACK])

    def finish(self) -> bytes:
        """Return the last bytes of the events inside. Raises ValueError if the event is incomplete or damaged."""
        if self._crc is not None and self._crc != int.from_bytes(self._checksum, "little"):
            raise ValueError("wrong checksum; check disk and network")
        if self._fields is not None:
            raise ValueError("its fields have no end")
        data = self._decompress(self._held)
        if self._compressed != self._announced.get(_PAYLOAD_SIZE, self._compressed):
            raise ValueError("the size of its payload differs from the announced size")
        if self._uncompressed != self._announced.get(_UNCOMPRESSED_SIZE, self._uncompressed):
            raise ValueError("the size of its events differs from the announced size")
        return data

    def _read_fields(self, data: bytes) -> bytes:
        """Read the fields once all of them have arrived; return the bytes that follow them."""
        cursor = Cursor(data)
        try:
            while (field := cursor.lenenc()) != _END:
                value = cursor.lenenc_bytes()
                if field in _KNOWN_FIELDS:
                    self._announced[field] = Cursor(value).lenenc()
        except IndexError:
            if len(data) > _MAX_FIELDS_SIZE:
                raise
            return b""
        compression = self._announced.get(_COMPRESSION, _ZSTD)
        if compression == _ZSTD:
            self._decompressor = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        elif compression != _NONE:
            raise ValueError(f"compression {compression} is not known")
        self._fields = None
        return data[cursor.at :]

    def _decompress(self, data: bytes) -> bytes:
        self._compressed += len(data)
        if self._decompressor is not None:
            try:
                data = self._decompressor.decompress(data) if data else b""
            except zstandard.ZstdError as error:
                raise ValueError(f"it can't be decompressed: {error}") from error
        self._uncompressed += len(data)
        return data
