"""TRANSACTION_PAYLOAD (MySQL ≥ 8.0.20): all events of a transaction, compressed; decompressed piece by piece.

Layout: libs/mysql/binlog/event/codecs in MySQL's source: fields of type, length, value, and after them the payload.
"""

from __future__ import annotations

import zlib

import zstandard

from databus_binlog.cursor import Cursor

#: Bytes of the event that are decompressed at once: zstd can turn one byte into 32 KiB, so a piece yields up to 16 MiB.
PIECE = 512
_LONGEST_HEAD = 64
_END, *_KNOWN = _END, _PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)
_ZSTD, _NONE = 0, 255
_CHECKSUM_BYTES = 4
_HELD_BACK = 64


class TransactionPayload:
    """Takes the event's body in pieces and returns the bytes of the events inside.

    The last bytes are kept back until the event's checksum is verified. Without them the transaction has no end, so
    a damaged one is never committed.
    """

    def __init__(self, header: bytes, size: int, *, checksum: bool) -> None:
        self._left = size - (_CHECKSUM_BYTES if checksum else 0)
        self._crc = zlib.crc32(header) if checksum else None
        self._checksum = b""
        self._head: bytes | None = b""  # the fields, until they are read
        self._inflate: zstandard.ZstdDecompressionObj | None = None
        self._held = b""
        self._announced: dict[int, int] = {}
        self._compressed = self._uncompressed = 0

    def feed(self, piece: bytes) -> bytes:
        """Take the next bytes of the event, at most PIECE; raise ValueError or IndexError if they are malformed."""
        body, checksum = piece[: self._left], piece[self._left :]
        self._left -= len(body)
        self._checksum += checksum
        if self._crc is not None:
            self._crc = zlib.crc32(body, self._crc)
        if self._head is not None:
            self._head += body
            body = self._read_head(self._head)
        body = self._held + body
        self._held = body[-_HELD_BACK:]
        return self._inflated(body[:-_HELD_BACK])

    def finish(self) -> bytes:
        """Check the complete event and return the last bytes of the events inside."""
        if self._crc is not None and self._crc != int.from_bytes(self._checksum, "little"):
            raise ValueError("wrong checksum; check disk and network")
        if self._head is not None:
            raise ValueError("its fields have no end")
        data = self._inflated(self._held)
        if self._compressed != self._announced.get(_PAYLOAD_SIZE, self._compressed):
            raise ValueError("the size of its payload differs from the announced size")
        if self._uncompressed != self._announced.get(_UNCOMPRESSED_SIZE, self._uncompressed):
            raise ValueError("the size of its events differs from the announced size")
        return data

    def _read_head(self, head: bytes) -> bytes:
        """Read the fields once all of them have arrived; return what follows them."""
        cursor = Cursor(head)
        try:
            while (field := cursor.lenenc()) != _END:
                value = cursor.lenenc_bytes()
                if field in _KNOWN:
                    self._announced[field] = Cursor(value).lenenc()
        except IndexError:
            if len(head) > _LONGEST_HEAD:
                raise
            return b""
        compression = self._announced.get(_COMPRESSION, _ZSTD)
        if compression == _ZSTD:
            self._inflate = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        elif compression != _NONE:
            raise ValueError(f"compression {compression} is not known")
        self._head = None
        return head[cursor.at :]

    def _inflated(self, data: bytes) -> bytes:
        self._compressed += len(data)
        if self._inflate is not None:
            try:
                data = self._inflate.decompress(data) if data else b""
            except zstandard.ZstdError as error:
                raise ValueError(f"it can't be decompressed: {error}") from error
        self._uncompressed += len(data)
        return data
