"""The compiled `RowWriter` writes text as Python's JSON encoder does.

How it writes any other value depends on the kind or function that is given for the column.
"""

import json
import random
from base64 import b64encode

import msgspec
import pytest

from databus_wire.errors import MalformedRows
from databus_wire.json_rows import (
    BASE64,
    DAYS,
    DECIMAL,
    JSON,
    LATIN_1,
    MICROSECONDS,
    MILLISECONDS,
    PLAIN,
    RAW,
    TEXT,
    TIME,
    ZONED,
    RowWriter,
)

ALPHABET = [*map(chr, range(0x90)), *'""\\\\', "é", "東", "\u2028", "\ud7ff", "\ue000", "\uffff", "😀", "\U0010ffff"]
#: a letter, and bytes at the ends of the ranges that UTF-8 permits, or next to them
EDGES = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c1 c2 df e0 e1 ed ef f0 f4 f5")


def in_brackets(text: bytes) -> str:
    return f"<{text.decode()}>"


def test_any_text_is_written_as_pythons_encoder_writes_it() -> None:
    draw, writer = random.Random(5), RowWriter(["c"], [TEXT])
    for size in [*range(60), *[25] * 2000, 5000, 100_000]:
        text = "".join(draw.choices(ALPHABET, k=size))
        assert writer.row([text.encode()]).decode() == '{"c":' + json.dumps(text, ensure_ascii=False) + "}"


@pytest.mark.parametrize("position", range(20))
def test_an_ascii_character_is_escaped_if_necessary_at_any_position(position: int) -> None:
    writer = RowWriter(["t", "l"], [TEXT, LATIN_1])
    for character in map(chr, range(0x80)):
        text = "x" * position + character + "y" * (20 - position)
        expected = json.dumps({"t": text, "l": text}, ensure_ascii=False, separators=(",", ":"))
        assert writer.row([text.encode(), text.encode()]).decode() == expected


def test_text_is_refused_if_and_only_if_it_is_not_utf8() -> None:
    draw, writer = random.Random(6), RowWriter(["c"], [TEXT])
    for _ in range(20_000):
        text = draw.choice([b"", b"a" * 40]) + bytes(draw.choices(EDGES, k=draw.randrange(1, 6)))
        try:
            expected = text.decode()
        except UnicodeDecodeError:
            with pytest.raises(ValueError, match="not UTF-8"):
                writer.row([text])
        else:
            assert json.loads(writer.row([text])) == {"c": expected}


def test_bytes_are_written_as_latin1_characters_or_as_base64() -> None:
    draw, writer = random.Random(5), RowWriter(["l", "b"], [LATIN_1, BASE64])
    for size in [*range(60), 10_000]:
        data = draw.randbytes(size)
        expected = {"l": data.decode("latin-1"), "b": b64encode(data).decode()}
        assert json.loads(writer.row([data, data])) == expected


def test_each_column_is_written_by_its_kind_or_function() -> None:
    writer = RowWriter(['a"b', "d", "e", "f"], [RAW, PLAIN, {b"x": b"[1]", b"y": None}.__getitem__, in_brackets])
    assert writer.row([b"1", b"2021", b"x", b'"']) == b'{"a\\"b":1,"d":"2021","e":[1],"f":"<\\">"}'
    assert writer.row([None, b"", b"y", None]) == b'{"a\\"b":null,"d":"","e":null,"f":null}'
    assert writer.row([None, b"", b"y", None], False, b"[", b"]") == b'[{"d":""}]'
    assert writer.row([None, None, None, None], False) == b"{}"
    assert writer.values((2, 0), [b"1", None, b"x", None]) == [b"[1]", b"1"]


@pytest.mark.parametrize("text", [b"0.1", b"-1234567.5", b"10.0", b"1.05"])
def test_short_decimals_are_copied(text: bytes) -> None:
    writer = RowWriter(["r", "p", "f"], [(RAW, in_brackets), (PLAIN, in_brackets), in_brackets])
    assert writer.row([text] * 3) == b'{"r":%b,"p":"%b","f":"<%b>"}' % (text, text, text)


@pytest.mark.parametrize(
    "text",
    [b"", b"-", b"1", b"1.", b".5", b"0.05", b"-0.01", b"12345678.5", b"1.5e-7", b"1e20", b"1.5\x00", b"1\x00.5"],
)
def test_texts_that_are_not_short_decimals_are_converted_by_the_function(text: bytes) -> None:
    assert json.loads(RowWriter(["c"], [(PLAIN, in_brackets)]).row([text])) == {"c": in_brackets(text)}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (DECIMAL, b"-19.99", '"+DE="'),
        (DECIMAL, b"999999999999999999", '"DeC2s6dj//8="'),
        (DECIMAL, b"1999999999999999999", "other"),
        (DECIMAL, b"1e3", "other"),
        (DAYS, b"1969-12-31", "-1"),
        (DAYS, b"2000-02-29", "11016"),
        (DAYS, b"1900-02-29", "other"),
        (DAYS, b"0000-01-01", "other"),
        (DAYS, b"2024-01-01 00:00:00", "other"),
        (MILLISECONDS, b"1969-12-31 23:59:59.999999", "-1"),
        (MICROSECONDS, b"9999-12-31 23:59:59.5", "253402300799500000"),
        (MICROSECONDS, b"2024-01-01 24:00:00", "other"),
        (TIME, b"-838:59:59.000001", "-3020399000001"),
        (TIME, b"7:00:00", "other"),
        (ZONED, b"2024-01-02 03:04:05.60", '"2024-01-02T03:04:05.60Z"'),
        (ZONED, b"0000-00-00 00:00:00", "other"),
        (
            JSON,
            b' {"a" : [1, -2.5e+3 , {}, [ ]], "b c": "d, \\\\ \\" e"} ',
            r'"{\"a\":[1,-2.5e+3,{},[]],\"b c\":\"d, \\\\ \\\" e\"}"',
        ),
        (JSON, b"[" * 64 + b"]" * 64, '"' + "[" * 64 + "]" * 64 + '"'),
        (JSON, b"[" * 65 + b"]" * 65, "other"),
        (JSON, rb'"\u0041"', "other"),
        (JSON, b'"\xff"', "other"),
        *(
            (JSON, text, "other")
            for text in (b"", b"01", b"1.", b"-", b"[1,]", b'{"a":1,}', b"{1:2}", b"[1}", b"1 2", b'"')
        ),
    ],
)
def test_the_function_converts_only_texts_that_are_not_on_the_fast_path(kind: int, text: bytes, expected: str) -> None:
    assert RowWriter(["c"], [(kind, lambda _: b"other")]).row([text]).decode() == f'{{"c":{expected}}}'


def test_changed_returns_the_old_values_of_the_columns_that_an_update_changed() -> None:
    writer = RowWriter(["a", "b", "c"], [RAW, TEXT, TEXT])
    before, after = [b"1", b"x", None], [b"1", b"y", b""]
    assert writer.changed(before, after) == b'{"b":"x","c":null}'
    assert writer.changed(before, after, False) == b'{"b":"x"}'
    assert writer.changed(before, before.copy()) is None


def test_an_array_has_all_values_of_its_rows_or_only_those_that_differ_from_other_rows() -> None:
    writer = RowWriter(["a", "b"], [RAW, TEXT])
    rows, others = [[b"1", b"x"], [b"2", None], [None, b"y"]], [[b"1", b"z"], [b"2", None], [b"3", None]]
    assert writer.array(rows) == b'[{"a":1,"b":"x"},{"a":2,"b":null},{"a":null,"b":"y"}]'
    assert writer.array(rows, others) == b'[{"b":"x"},{},{"a":null,"b":"y"}]'
    assert writer.array([]) == b"[]"


def test_some_columns_of_each_row_are_written_between_head_and_tail() -> None:
    writer = RowWriter(["a", "b", "c"], [RAW, TEXT, RAW])
    rows: list[list[bytes | None]] = [[b"1", b"x", b"2"], [b"3", None, b"4"]]
    assert writer.some_columns(rows, (2, 1), b"<", b">") == [b'<{"c":2,"b":"x"}>', b'<{"c":4,"b":null}>']
    assert writer.some_columns(rows, ()) == [b"{}", b"{}"]


def test_numbered_rows_have_the_same_tail_or_a_tail_each() -> None:
    writer = RowWriter(["a"], [RAW])
    rows: list[list[bytes | None]] = [[b"1"], [b"2"]]
    assert writer.numbered(rows, [0, 10], b"<", None, b"#", b">") == [b'<{"a":1}#0>', b'<{"a":2}#10>']
    assert writer.numbered(rows, range(7, 9), b"<", None, b"#", [b")", b"]"]) == [b'<{"a":1}#7)', b'<{"a":2}#8]']
    assert writer.numbered(rows, [-3], b"<", b"|", b"#", b">") == [b'<{"a":1}|{"a":2}#-3>']


def test_packed_rows_are_written_like_lists() -> None:
    with_fast_path = [(kind, in_brackets) for kind in (DECIMAL, JSON, ZONED)]
    writer = RowWriter("abcdefgh", [RAW, TEXT, LATIN_1, BASE64, *with_fast_path, in_brackets])
    draw, values = random.Random(7), [None, b"12.50", b"", b"[1, 2]", b"2026-01-02 03:04:05", b"x" * 300]
    for count in [1, 2, 4, 30, 70_000]:
        rows = draw.choices([draw.choices(values, k=8) for _ in range(1000)], k=count)
        packed = msgspec.Raw(msgspec.msgpack.encode(rows))
        assert writer.array(packed) == writer.array(rows)
        assert writer.some_columns(packed, (7, 4, 0), b"<", b">") == writer.some_columns(rows, (7, 4, 0), b"<", b">")
        numbers = range(count)
        assert writer.numbered(packed, numbers, b"<", None, b"#", b">") == [
            writer.row(row, True, b"<", b"#%d>" % number) for row, number in zip(rows, numbers, strict=True)
        ]
        if count % 2 == 0:
            pairs = range(count // 2)
            expected = writer.numbered(rows, pairs, b"<", b"|", b"#", b">")
            assert writer.numbered(packed, pairs, b"<", b"|", b"#", b">") == expected


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"", "cut off"),
        (b"\x91\x91\xc4\x02x", "cut off"),
        (b"\x92\x91\xc0", "cut off"),
        (b"\x91\x91\xc0\xc0", "after the last row"),
        (b"\x90\xc0", "after the last row"),
        (b"\x91\x91\x01", "bytes or NULL"),
        (b"\x91\x91\xc2", "a value is absent"),
        (b"\x80", "arrays of arrays"),
    ],
)
def test_malformed_packed_rows_are_refused(packed: bytes, why: str) -> None:
    writer = RowWriter(["a"], [RAW])
    with pytest.raises(MalformedRows, match=why):
        writer.array(packed)
    with pytest.raises(MalformedRows, match=why):
        writer.some_columns(packed, (0,))


@pytest.mark.parametrize(("packed", "count"), [(b"\x91\x90", 0), (b"\x91\x92\xc0\xc0", 2)])
def test_packed_rows_with_too_few_or_too_many_values_are_refused(packed: bytes, count: int) -> None:
    with pytest.raises(ValueError, match=f"a row has {count} values, but its table has 1 columns"):
        RowWriter(["a"], [RAW]).array(packed)


def test_arguments_that_do_not_fit_the_table_or_each_other_are_refused() -> None:
    writer = RowWriter(["a", "b"], [RAW, RAW])
    with pytest.raises(ValueError, match="a row has 1 values, but its table has 2 columns"):
        writer.row([b"1"])
    with pytest.raises(ValueError, match="a row has 1 values, but its table has 2 columns"):
        writer.array([[b"1", b"2"]], [[b"1"]])
    with pytest.raises(ValueError, match="must have as many rows"):
        writer.array([[b"1", b"2"]], [])
    with pytest.raises(IndexError, match="no column with index 2"):
        writer.values((2,), [b"1", b"2"])
    with pytest.raises(IndexError, match="no column with index -1"):
        writer.some_columns([[b"1", b"2"]], (0, -1))
    with pytest.raises(ValueError, match="as many rows as numbers"):
        writer.numbered([[b"1", b"2"]], [0, 1], b"", None, b"", b"")
    with pytest.raises(ValueError, match="as many rows as numbers"):
        writer.numbered([[b"1", b"2"]], [0], b"", b",", b"", b"")
    with pytest.raises(ValueError, match="as many tails"):
        writer.numbered([[b"1", b"2"]], [0], b"", None, b"", [])
    with pytest.raises(ValueError, match="as many conversions"):
        RowWriter(["a"], [])
    with pytest.raises(ValueError, match="needs a conversion"):
        RowWriter(["a"], [DECIMAL])
    with pytest.raises(TypeError):
        writer.row([b"1", "2"])  # type: ignore[list-item]  # not bytes on purpose
