"""Packed rows, which are msgpack, converted to lists and to JSON."""

import random
from collections.abc import Sequence

import msgspec
import pytest

from databus_binlog import ABSENT
from databus_wire.errors import MalformedRows
from databus_wire.json_base64 import json_base64
from databus_wire.packed_rows import PackedRows

pack = msgspec.msgpack.encode


def test_packed_rows_are_unpacked_and_written_as_json_without_loss() -> None:
    draw = random.Random(4)
    sizes = [*range(20), 31, 32, 255, 256, 65535, 65536]
    for _ in range(300):
        rows = [
            [None if draw.random() < 0.2 else draw.randbytes(draw.choice(sizes)) for _ in range(draw.randrange(20))]
            for _ in range(draw.randrange(40))
        ]
        packed = pack(rows)
        assert json_base64(msgspec.Raw(packed)) == msgspec.json.encode(rows)
        assert PackedRows(packed).unpack() == rows


def test_long_rows_and_arrays_of_many_rows_are_read() -> None:
    rows = [[b"x"] * 17] * 70_000
    assert json_base64(pack(rows)) == msgspec.json.encode(rows)
    assert len(PackedRows(pack(rows))) == 70_000
    assert PackedRows(pack(rows))[-1] == rows[-1]


def test_packed_rows_are_a_sequence() -> None:
    rows: Sequence[list[bytes | None]] = PackedRows(pack([[b"1"], [None], [b"1"]]))
    assert isinstance(rows, Sequence)
    assert list(rows) == list(reversed(rows)) == [rows[0], rows[1], rows[2]] == rows[:] == [[b"1"], [None], [b"1"]]
    assert ([None] in rows, [b"2"] in rows) == (True, False)
    assert (rows.index([None]), rows.count([b"1"]), rows.count([b"2"])) == (1, 2, 0)


@pytest.mark.parametrize("rows", [7, [7], [[7]], [["text"]], [[True]], [[[]]], {"a": 1}])
def test_msgpack_that_is_not_rows_is_refused(rows: object) -> None:
    with pytest.raises(MalformedRows, match=r"arrays of arrays|bytes or NULL"):
        json_base64(pack(rows))
    with pytest.raises(MalformedRows, match=r"arrays of arrays|bytes or NULL"):
        PackedRows(pack(rows)).unpack()


def test_columns_that_are_absent_are_marked() -> None:
    rows = [[b"1", False, None], [False, b"x", False]]
    assert json_base64(pack(rows)) == msgspec.json.encode(rows) == b'[["MQ==",false,null],[false,"eA==",false]]'
    unpacked = PackedRows(pack(rows)).unpack()
    assert unpacked == rows
    assert unpacked[0][1] is ABSENT


def test_rows_that_are_cut_off_or_followed_by_bytes_are_refused() -> None:
    packed = pack([[b"abc", None], [b"d" * 300, b""]])
    for end in range(len(packed)):
        with pytest.raises(MalformedRows, match="cut off"):
            json_base64(packed[:end])
        with pytest.raises(MalformedRows, match="cut off"):
            PackedRows(packed[:end]).unpack()
    with pytest.raises(MalformedRows, match="after the last row"):
        json_base64(packed + b"\x90")
    with pytest.raises(MalformedRows, match="after the last row"):
        PackedRows(packed + b"\x90").unpack()
