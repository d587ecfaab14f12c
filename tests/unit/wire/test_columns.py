"""Packed rows as columns in Arrow's layout."""

import random

import msgspec
import pyarrow
import pytest

from databus_wire.columns import columns
from databus_wire.errors import MalformedRows

pack = msgspec.msgpack.encode


def arrays(batches: list[bytes], width: int) -> list[pyarrow.Array]:
    count, found = columns(batches, width)
    binary = pyarrow.binary()
    return [
        pyarrow.Array.from_buffers(binary, count, list(map(pyarrow.py_buffer, buffers)), nulls)
        for *buffers, nulls in found
    ]


def test_columns_have_the_values_of_all_batches() -> None:
    draw = random.Random(4)
    sizes = [0, 1, 5, 31, 32, 255, 256, 65536]
    for width in (1, 3, 20):
        rows = [
            [None if draw.random() < 0.2 else draw.randbytes(draw.choice(sizes)) for _ in range(width)]
            for _ in range(50)
        ]
        for size in (1, 7, 50):
            found = arrays([pack(rows[first : first + size]) for first in range(0, 50, size)], width)
            for array in found:
                array.validate(full=True)
            assert [array.to_pylist() for array in found] == [list(values) for values in zip(*rows, strict=True)]
            assert [array.null_count for array in found] == [column.count(None) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("count", range(1, 18))
def test_columns_of_few_rows_have_their_own_nulls(count: int) -> None:
    rows = [[None if (number + column) % 3 else b"x" for column in range(4)] for number in range(count)]
    found = arrays([pack(rows)], 4)
    assert [array.to_pylist() for array in found] == [list(values) for values in zip(*rows, strict=True)]


def test_no_rows_are_empty_columns() -> None:
    assert [array.to_pylist() for array in arrays([], 2)] == [[], []]
    assert [array.to_pylist() for array in arrays([pack([])], 2)] == [[], []]


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (pack([[b"1"]]), "not as many values"),
        (pack([[b"1", None, b"2"]]), "not as many values"),
        (pack([[b"1", False]]), "absent"),
        (pack([[b"1", None]])[:-1], "cut off"),
        (pack([[b"1", None]]) + b"\0", "after the last row"),
    ],
)
def test_what_is_not_rows_of_the_table_is_refused(packed: bytes, reason: str) -> None:
    with pytest.raises(MalformedRows, match=reason):
        columns([packed], 2)
