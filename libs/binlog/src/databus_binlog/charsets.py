"""Character sets of MySQL and MariaDB, as ways to make UTF-8 of a column's bytes."""

from __future__ import annotations

import codecs
from functools import cache

UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4"})

#: Python's codecs of the single-byte sets. What a codec leaves undefined the server prints as a question mark.
_SINGLE_BYTE = {
    "ascii": "ascii",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "macroman": "mac_roman",
    "macce": "mac_latin2",
    "tis620": "tis_620",
}

#: Those whose codec agrees with the server on every character. sjis, ujis, big5 and gb18030 do not, by a few each.
_MULTI_BYTE = {
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "cp932": "cp932",
    "euckr": "cp949",
}

#: Where the server's table (strings/ctype-*.c) differs from Python's codec: byte → character.
_OVERRIDES: dict[str, dict[int, str]] = {
    "latin1": {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},  # cp1252 without holes
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: "?", 0xA5: "?", 0xAA: "?"},
    "hebrew": {0xAF: "\u203e"},
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), "?"),
    "cp866": {0xFC: "\u207f", 0xFD: "\u00b2"},
    "koi8u": {0x95: "\u2022"},
    "tis620": dict.fromkeys((0xA0, *range(0xDB, 0xDF), *range(0xFC, 0x100)), "\ufffd"),
}

#: Collations every server has under these numbers; a live server's own list (Session.collations) replaces it.
DEFAULT_COLLATIONS: dict[int, str] = {
    8: "latin1",
    11: "ascii",
    33: "utf8mb3",
    45: "utf8mb4",
    46: "utf8mb4",
    47: "latin1",
    48: "latin1",
    51: "cp1251",
    63: "binary",
    65: "ascii",
    83: "utf8mb3",
    **dict.fromkeys(range(192, 216), "utf8mb3"),
    **dict.fromkeys(range(224, 248), "utf8mb4"),
    **dict.fromkeys(range(255, 324), "utf8mb4"),
}


@cache
def single_byte_table(charset: str) -> tuple[bytes, ...] | None:
    """Return the UTF-8 form of each of the 256 bytes, or None if it is no single-byte set known here."""
    codec = _SINGLE_BYTE.get(charset)
    if codec is None:
        return None
    texts = {byte: bytes([byte]).decode(codec, "replace").replace("\ufffd", "?") for byte in range(256)}
    return tuple(text.encode() for text in (texts | _OVERRIDES.get(charset, {})).values())


def codec_of(charset: str) -> str | None:
    """Return the Python codec of a multi-byte set, or None if it is none known here."""
    return _MULTI_BYTE.get(charset)


def to_text(data: bytes, charset: str | None) -> str:
    """Decode a name or statement in `charset`; None means UTF-8. Raise LookupError for a set not known here."""
    if charset is None or charset in UTF8 or data.isascii():
        return data.decode()
    table = single_byte_table(charset)
    if table is not None:
        return b"".join(table[byte] for byte in data).decode()
    codec = _MULTI_BYTE.get(charset)
    if codec is None:
        raise LookupError(f"character set {charset!r} can't be decoded")
    return codecs.decode(data, codec)
