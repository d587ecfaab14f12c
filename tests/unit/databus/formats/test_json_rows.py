"""The compiled writer of rows: what it writes is what Python's encoder does."""

import json
import random
from base64 import b64encode

import pytest

from databus.formats.json_rows import BASE64, PLAIN, RAW, TEXT, RowWriter

ALPHABET = 'a"\\/\b\f\n\r\t\x00\x1f\x7fé東😀\u2028'


def test_text_of_any_characters_reads_back_as_it_was() -> None:
    draw, writer = random.Random(5), RowWriter(["c"], [TEXT])
    for size in [*range(60), 5000, 100_000]:
        text = "".join(draw.choices(ALPHABET, k=size))
        written = writer.row([text.encode()])
        assert json.loads(written) == {"c": text}
        assert written.decode() == '{"c":' + json.dumps(text, ensure_ascii=False) + "}"


@pytest.mark.parametrize(
    "broken",
    [
        b"\x80",
        b"\xc0\x80",
        b"\xc3",
        b"a\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf0\x9f\x98",
        b"\xff",
        b"\xe6a",
    ],
)
def test_what_is_no_utf8_is_refused(broken: bytes) -> None:
    writer = RowWriter(["c"], [TEXT])
    for text in (broken, broken + b"a", b"a" * 40 + broken):
        with pytest.raises(ValueError, match="not UTF-8"):
            writer.row([text])
    assert writer.row([b"a"]) == b'{"c":"a"}'


def test_bytes_are_base64() -> None:
    draw, writer = random.Random(5), RowWriter(["c"], [BASE64])
    for size in [*range(20), 10_000]:
        data = draw.randbytes(size)
        assert writer.row([data]) == b'{"c":"%b"}' % b64encode(data)


def test_each_column_is_written_in_its_way() -> None:
    writer = RowWriter(['a"b', "d", "e"], [RAW, PLAIN, {b"x": b"[1]", b"y": None}.__getitem__])
    assert writer.row([b"1", b"2021", b"x"]) == b'{"a\\"b":1,"d":"2021","e":[1]}'
    assert writer.row([None, b"", b"y"]) == b'{"a\\"b":null,"d":"","e":null}'
    assert writer.row([None, b"", b"y"], False, b"[", b"]") == b'[{"d":""}]'
    assert writer.row([None, None, None], False) == b"{}"
    assert writer.values((2, 0), [b"1", None, b"x"]) == [b"[1]", b"1"]


def test_only_what_changed_is_told() -> None:
    writer = RowWriter(["a", "b", "c"], [RAW, TEXT, TEXT])
    assert writer.changed([b"1", b"x", None], [b"1", b"y", b""]) == b'{"b":"x","c":null}'
    assert writer.changed([b"1", b"x", None], [b"1", b"y", b""], False) == b'{"b":"x"}'
    assert writer.changed([b"1", None, None], [b"1", None, None]) is None


def test_what_is_no_row_of_the_table_is_refused() -> None:
    writer = RowWriter(["a", "b"], [RAW, RAW])
    with pytest.raises(ValueError, match="another number of values"):
        writer.row([b"1"])
    with pytest.raises(IndexError):
        writer.values((2,), [b"1", b"2"])
    with pytest.raises(ValueError, match="as many conversions"):
        RowWriter(["a"], [])
    with pytest.raises(TypeError):
        writer.row([b"1", "2"])  # type: ignore[list-item]  # that it is no bytes is what is tested
