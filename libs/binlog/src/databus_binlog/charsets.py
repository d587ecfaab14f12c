"""Converts between UTF-8 and the character sets of MySQL and MariaDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial

from databus_binlog.charset_tables import MULTI_BYTE, SINGLE_BYTE, MultiByte

UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4"})

#: character set → Python's codec, which agrees with the server for every code
_UTF = {"utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be"}


@cache
def single_byte_table(charset: str) -> tuple[bytes, ...] | None:
    """Return the UTF-8 form of each of the 256 bytes, or None if this is not a known single-byte set."""
    if charset not in SINGLE_BYTE:
        return None
    codec, differing = SINGLE_BYTE[charset]
    texts = {byte: bytes([byte]).decode(codec, "replace").replace("\ufffd", "?") for byte in range(256)}
    return tuple(text.encode() for text in (texts | differing).values())


@cache
def packed_table(charset: str) -> bytes:
    """Return a single-byte set's table for the compiled decoder: see `write_single_byte` in charset_text.pxd."""
    return b"".join(bytes([len(text)]) + text.ljust(3, b"\0") for text in single_byte_table(charset) or ())


@cache
def multi_byte(charset: str) -> Callable[[bytes], str] | None:
    """Return a decoder of a multi-byte set, or None if the set is not known.

    The decoder returns what the server prints: for a code that the server stores although it has no character, mostly a
    question mark. It raises UnicodeError for bytes that are not a code of the set, for a lone surrogate, and in ucs2
    for any surrogate.
    """
    if charset in _UTF:
        return partial(bytes.decode, encoding=_UTF[charset])
    return _Decoder(charset, MULTI_BYTE[charset]) if charset in MULTI_BYTE else None


class _Decoder:
    """Decodes text of one multi-byte set with Python's codec.

    A text with a character for which codec and server may differ, and bytes that the codec can't decode, are decoded
    code by code.
    """

    def __init__(self, charset: str, facts: MultiByte) -> None:
        self._charset = charset
        self._codec = facts.codec
        self._code = re.compile(facts.code, re.DOTALL)
        self._characters = _Characters(facts)
        doubtful = facts.foreign + "".join(re.escape(_character(code, facts.codec)) for code in facts.differing)
        self._doubtful = re.compile(f"[{doubtful}]") if doubtful else None

    def __call__(self, data: bytes) -> str:
        try:
            text = data.decode(self._codec)
        except UnicodeDecodeError:
            return self._by_code(data)
        return self._by_code(data) if self._doubtful and self._doubtful.search(text) else text

    def _by_code(self, data: bytes) -> str:
        codes = self._code.findall(data)
        if sum(map(len, codes)) < len(data):
            raise UnicodeDecodeError(self._charset, data, 0, len(data), "bytes without a code in this character set")
        return "".join(map(self._characters.__getitem__, codes))


class _Characters(dict[bytes, str]):
    """The codes of a set and their characters on the server. A code is added when it first occurs."""

    def __init__(self, facts: MultiByte) -> None:
        super().__init__(facts.differing)
        self._codec = facts.codec

    def __missing__(self, code: bytes) -> str:
        self[code] = character = _character(code, self._codec) or "?"
        return character


def _character(code: bytes, codec: str) -> str:
    """Return the codec's character for a code, or "" if it has none."""
    try:
        return code.decode(codec)
    except UnicodeDecodeError:
        return ""


def to_text(data: bytes, charset: str | None) -> str:
    """Decode a label or statement in `charset`; None means UTF-8.

    Raises UnicodeError for bytes that are not text of the set, and LookupError for an unknown set, unless all bytes are
    ASCII.
    """
    if charset is None or charset in UTF8:
        return data.decode()
    if table := single_byte_table(charset):
        return b"".join(table[byte] for byte in data).decode()
    if decode := multi_byte(charset):
        return decode(data)
    if data.isascii():  # all other sets, like binary, contain ASCII
        return data.decode()
    raise LookupError(f"character set {charset!r} can't be decoded")


def statement(data: bytes, charset: str) -> bytes:
    """Return a statement as UTF-8. Bytes that are invalid in UTF-8 or a multi-byte set (binary literals) are kept.

    Raises LookupError for an unknown set, unless all bytes are ASCII.
    """
    if charset in UTF8 or charset == "binary":
        return data
    try:
        return to_text(data, charset).encode()
    except UnicodeError:
        return data.decode(MULTI_BYTE[charset].codec, "surrogateescape").encode(errors="surrogateescape")


def to_bytes(text: str, charset: str) -> bytes:
    """Encode text as a column in `charset` stores it.

    Raises UnicodeError for a character that is not in the set; utf8mb3 and ucs2 are taken to have all of Unicode.
    """
    if charset in UTF8:
        return text.encode()
    if charset in _UTF or charset == "ucs2":
        return text.encode(_UTF.get(charset, "utf_16_be"))
    codes = _codes(charset)
    return b"".join([codes[character] for character in text])


@cache
def _codes(charset: str) -> dict[str, bytes]:
    table = single_byte_table(charset)
    if table is None:
        return _Codes(MULTI_BYTE[charset])
    codes = {text.decode(): bytes([byte]) for byte, text in reversed(list(enumerate(table)))}
    return _Codes(MultiByte(codec="ascii", code=b""), codes | {"?": b"?"})


class _Codes(dict[str, bytes]):
    """The characters of a set and their codes. A character is added when it first occurs.

    Of several codes for a character, the one in `known` is used, else the codec's, else the first in `facts.differing`.
    """

    def __init__(self, facts: MultiByte, known: Mapping[str, bytes] | None = None) -> None:
        super().__init__(known or {})
        self._codec = facts.codec
        self._differing = facts.differing
        self._others = {text: code for code, text in reversed(facts.differing.items())}

    def __missing__(self, character: str) -> bytes:
        code = self._others.get(character, b"")
        plain = character.encode(self._codec, "ignore")
        if plain and plain not in self._differing:
            code = plain
        if not code:
            raise UnicodeEncodeError(self._codec, character, 0, 1, "the character set does not have it")
        self[character] = code
        return code
