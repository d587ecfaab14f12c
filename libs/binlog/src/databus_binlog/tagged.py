"""Parses the body of GTID_TAGGED (MySQL ≥ 8.3).

libs/mysql/serialization/readme.md in MySQL's source describes the format.
"""

from __future__ import annotations

from uuid import UUID

from databus_binlog.cursor import Cursor

_LAST_KNOWN_FIELD = 11


class _Fields(Cursor):
    def unsigned(self) -> int:
        """Read a number. The first byte ends with as many one-bits as bytes follow it."""
        first = self.uint(1)
        if first == 0xFF:
            return self.uint(8)
        more = (~first & (first + 1)).bit_length() - 1  # trailing one-bits
        return (first | self.uint(more) << 8) >> (more + 1)

    def signed(self) -> int:
        number = self.unsigned()
        return -(number >> 1) - 1 if number & 1 else number >> 1


def parse_tagged_gtid(body: bytes) -> tuple[str, int]:
    """Return the GTID's text and its original commit time in µs; raise ValueError or IndexError if malformed."""
    fields = _Fields(body)
    version, size, needed = fields.unsigned(), fields.unsigned(), fields.unsigned()
    if version != 1 or size > len(body) or needed > _LAST_KNOWN_FIELD:
        raise ValueError(
            f"unsupported format: version {version} (must be 1), size {size} (at most {len(body)}),"
            f" last required field {needed} (at most {_LAST_KNOWN_FIELD})"
        )
    uuid, number, tag, immediate, original = bytes(16), 0, "", 0, 0
    while fields.at < size:
        match fields.unsigned():
            case 1:
                uuid = bytes(fields.unsigned() for _ in range(16))
            case 2:
                number = fields.signed()
            case 3:
                tag = fields.take(fields.unsigned()).decode("ascii")
            case 4 | 5:  # last committed, sequence number
                fields.signed()
            case 6:
                immediate = fields.unsigned()
            case 7:
                original = fields.unsigned()
            case 0 | 8 | 9 | 10 | 11:  # flags, transaction length, two server versions, commit group
                fields.unsigned()
            case _:
                break  # fields that later servers add come last and may be ignored
    source = f"{UUID(bytes=uuid)}:{tag}" if tag else str(UUID(bytes=uuid))
    return f"{source}:{number}", original or immediate
