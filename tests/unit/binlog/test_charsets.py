"""Text is encoded to the bytes that a column of its character set stores."""

import pytest

from databus_binlog import charsets
from databus_binlog.charset_tables import MULTI_BYTE, SINGLE_BYTE


@pytest.mark.parametrize("charset", SINGLE_BYTE)
def test_every_character_of_a_single_byte_set_survives_encoding_and_decoding(charset: str) -> None:
    for text in charsets.single_byte_table(charset) or ():
        encoded = charsets.to_bytes(text.decode(), charset)
        assert charsets.to_text(encoded, charset).encode() == text


@pytest.mark.parametrize("charset", MULTI_BYTE)
def test_characters_of_a_multi_byte_set_survive_encoding_and_decoding(charset: str) -> None:
    decode = charsets.multi_byte(charset)
    assert decode
    for code in [bytes([lead, trail]) for lead in range(0x81, 0xFF) for trail in range(0x40, 0xFF)]:
        try:
            text = decode(code)
        except UnicodeError:
            continue
        if "?" not in text:  # for most codes without a character, the server prints a question mark
            assert decode(charsets.to_bytes(text, charset)) == text


def test_a_character_that_is_not_in_the_set_is_refused() -> None:
    for charset in ("latin1", "gbk", "ascii"):
        with pytest.raises(UnicodeError):
            charsets.to_bytes("a😀", charset)


def test_text_is_encoded_as_the_server_stores_it() -> None:
    assert charsets.to_bytes("é", "utf8mb3") == b"\xc3\xa9"
    assert charsets.to_bytes("é", "ucs2") == b"\0\xe9"
    assert charsets.to_bytes("é", "utf16le") == b"\xe9\0"
    assert charsets.to_bytes("\\~", "sjis") == b"\\~"
