"""Rows as JSON objects: what a JSON parser reads back, whatever the cells hold."""

import json
import random

import pytest

from databus_binlog.row_json import objects

MEMBERS = [b'"a":', b'"b":']


def one(cell: bytes | None, kind: bytes = b"t") -> bytes:
    (made,) = objects([b'"c":'], kind, [lambda found: f"<{found.decode()}>"], [[cell]])
    return made


def test_any_text_is_read_back() -> None:
    draw = random.Random(5)
    alphabet = [*map(chr, range(0x90)), "é", "東", "\u2028", "\ud7ff", "\ue000", "\uffff", "😀", "\U0010ffff"]
    for _ in range(2000):
        text = "".join(draw.choices(alphabet, k=draw.randrange(40)))
        assert json.loads(one(text.encode())) == {"c": text}
        cell = draw.randbytes(draw.randrange(40))
        assert json.loads(one(cell, b"l")) == {"c": cell.decode("latin-1")}


def test_text_is_refused_exactly_where_it_is_not_utf8() -> None:
    draw = random.Random(6)
    bytes_of_interest = [
        0x41,
        0x7F,
        0x80,
        0x8F,
        0x90,
        0x9F,
        0xA0,
        0xBF,
        0xC1,
        0xC2,
        0xDF,
        0xE0,
        0xE1,
        0xED,
        0xEF,
        0xF0,
        0xF4,
        0xF5,
    ]
    for _ in range(50_000):
        cell = bytes(draw.choices(bytes_of_interest, k=draw.randrange(1, 6)))
        try:
            expected = cell.decode()
        except UnicodeDecodeError:
            with pytest.raises(UnicodeDecodeError):
                one(cell)
        else:
            assert json.loads(one(cell)) == {"c": expected}


def test_null_is_null_and_empty_is_empty() -> None:
    assert (one(None), one(b""), one(None, b"c")) == (b'{"c":null}', b'{"c":""}', b'{"c":null}')


@pytest.mark.parametrize("cell", [b"0.1", b"-1234567.5", b"10.0", b"1.05"])
def test_short_decimals_stay_as_they_are(cell: bytes) -> None:
    assert one(cell, b"f") == b'{"c":"%b"}' % cell
    assert one(cell, b"c") == b'{"c":"<%b>"}' % cell


@pytest.mark.parametrize("cell", [b"", b"-", b"1", b"1.", b".5", b"0.05", b"-0.01", b"12345678.5", b"1.5e-7", b"1e20"])
def test_other_numbers_are_converted(cell: bytes) -> None:
    assert one(cell, b"f") == b'{"c":"<%b>"}' % cell


def test_what_is_equal_in_the_other_row_is_left_out() -> None:
    before, after = [[b"1", b"x"], [b"2", None], [None, b"y"]], [[b"1", b"z"], [b"2", None], [b"3", None]]
    made = objects(MEMBERS, b"tt", [None, None], before, after)
    assert made == [b'{"b":"x"}', b"{}", b'{"a":null,"b":"y"}']


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="as many cells"):
        objects(MEMBERS, b"tt", [None, None], [[b"1"]])
    with pytest.raises(ValueError, match="of one length"):
        objects(MEMBERS, b"t", [None, None], [])
    with pytest.raises(TypeError, match="bytes or None"):
        objects(MEMBERS, b"tt", [None, None], [[b"1", "text"]])  # type: ignore[list-item]
