"""MySQL's binary JSON is decoded to the text that the server prints."""

import struct
from collections.abc import Callable

import pytest

from databus_binlog import CorruptEvent


@pytest.fixture
def text_of(value_of) -> Callable[[str], bytes]:
    """Decode a binary JSON document, given in hexadecimal."""

    def run(document: str) -> bytes:
        raw = bytes.fromhex(document)
        return value_of("f5", "04", (len(raw).to_bytes(4, "little") + raw).hex())

    return run


def opaque(field: int, value: bytes) -> str:
    """Return a document that is one value of an SQL type, in this file a DECIMAL, a date or time, or a blob."""
    return (bytes([15, field, len(value)]) + value).hex()


def packed(year: int, month: int, day: int, hour: int, minute: int, second: int, micro: int) -> bytes:
    """Return a DATE or DATETIME as JSON stores it."""
    whole = (((year * 13 + month) << 5 | day) << 17) | hour << 12 | minute << 6 | second
    return struct.pack("<q", (whole << 24) + micro)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("", b"null"),
        ("00 0000 0400", b"{}"),
        ("02 0000 0400", b"[]"),
        ("00 0100 0c00 0b00 0100 05 0100 61", b'{"a": 1}'),
        ("00 0100 0c00 0b00 0100 05 d204 61", b'{"a": 1234}'),
        ("01 01000000 14000000 13000000 0100 07 ffffffff 61", b'{"a": -1}'),
        ("02 0300 0d00 04 0000 04 0100 04 0200", b"[null, true, false]"),
        ("05 ffff", b"-1"),
        ("06 ffff", b"65535"),
        ("08 ffffffff", b"4294967295"),
        ("09 ffffffffffffffff", b"-1"),
        ("0a ffffffffffffffff", b"18446744073709551615"),
        ("0b 000000000000f03f", b"1.0"),
        ("0b" + struct.pack("<d", 1e20).hex(), b"1e20"),
        ("0c 03 61 22 0a", rb'"a\"\n"'),
        ("0c 03 01 5c 2f", b'"\\u0001\\\\/"'),
        ("0c 8001" + "78" * 128, b'"' + b"x" * 128 + b'"'),
        (opaque(246, bytes.fromhex("0402 8117")), b"1.23"),
        (opaque(12, packed(2021, 2, 3, 4, 5, 6, 7)), b'"2021-02-03 04:05:06.000007"'),
        (opaque(10, packed(2021, 2, 3, 0, 0, 0, 0)), b'"2021-02-03"'),
        (opaque(11, struct.pack("<q", -((838 << 12 | 59 << 6 | 58) << 24))), b'"-838:59:58.000000"'),
        (opaque(252, b"\x00\x01"), b'"base64:type252:AAE="'),
    ],
)
def test_documents_print_as_the_server_prints_them(text_of, document, text):
    assert text_of(document) == text


@pytest.mark.parametrize("document", ["00 0100 0c00 ff00 0100 05 0100 61", "00 ffff 0400", "0d", "0c 05 61", "04 03"])
def test_a_malformed_document_is_an_error(text_of, document):
    with pytest.raises(CorruptEvent, match=r"column 0 of lab.t .*malformed binary JSON"):
        text_of(document)


def test_an_update_of_json_by_mysql_5_7_has_complete_images(wire, decode):
    table = "6c0000000000 0100 04 74657374 00 03 743131 00 04 030ff503 03 640004 0f 010100 02012d"
    rows = (
        "6c0000000000 0100 0200 04 ff ff"
        "f8 01000000 02 7b7d 05000000 00 0000 0400"
        "f8 01000000 0a 7b2261223a313233347d 0d000000 00 0100 0c00 0b00 0100 05 d204 61"
    )
    [update] = decode(wire.event(19, bytes.fromhex(table)), wire.event(31, bytes.fromhex(rows)))
    assert (update.action, update.count, update.complete) == ("update", 2, True)
    assert update.images() == [[b"1", b"{}", b"{}", None], [b"1", b'{"a":1234}', b'{"a": 1234}', None]]


def test_a_document_whose_arrays_share_their_elements_is_an_error_before_it_fills_the_memory(text_of):
    kind, value = "0c", "01 61"  # a string of one byte
    # Each array has two entries with the same offset. Layout: count, size, type and offset of each entry, the value.
    for _ in range(30):
        size = 10 + len(bytes.fromhex(value))
        kind, value = "02", f"0200 {size.to_bytes(2, 'little').hex()} {kind} 0a00 {kind} 0a00 {value}"
    with pytest.raises(CorruptEvent, match="malformed binary JSON"):
        text_of(f"{kind} {value}")
