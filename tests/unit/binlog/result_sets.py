"""Builds the packets with which a server answers a SELECT."""

from collections.abc import Sequence

EOF = b"\xfe\0\0\2\0"
OK = b"\xfe\0\0\2\0\0\0"
DEFINITION = b"\3def\0\0\0\1c\0\x0c\x21\0\0\0\0\0\xfd\0\0\0\0\0"


def lenenc(text: bytes) -> bytes:
    size = len(text)
    for limit, head, width in ((0xFB, b"", 1), (1 << 16, b"\xfc", 2), (1 << 24, b"\xfd", 3)):
        if size < limit:
            return head + size.to_bytes(width, "little") + text
    return b"\xfe" + size.to_bytes(8, "little") + text


def row(*cells: bytes | None) -> bytes:
    """Return a row's payload."""
    return b"".join(b"\xfb" if cell is None else lenenc(cell) for cell in cells)


def packets(*payloads: bytes) -> bytes:
    """Return payloads as packets that are numbered from 1; a long payload takes several."""
    parts = [payload[at : at + 0xFFFFFF] for payload in payloads for at in range(0, len(payload) + 1, 0xFFFFFF)]
    return b"".join(len(part).to_bytes(3, "little") + bytes([n & 255]) + part for n, part in enumerate(parts, 1))


def head(columns: int, *, deprecate_eof: bool = False) -> list[bytes]:
    """Return the payloads that precede the rows."""
    count = bytes([columns]) if columns < 0xFB else b"\xfc" + columns.to_bytes(2, "little")
    return [count, *[DEFINITION] * columns, *([] if deprecate_eof else [EOF])]


def answer(columns: int, rows: Sequence[bytes], *, deprecate_eof: bool = False) -> bytes:
    """Return the packets of a complete result set; the rows are payloads."""
    end = OK if deprecate_eof else EOF
    return packets(*head(columns, deprecate_eof=deprecate_eof), *rows, end)
