"""The literals and conditions by which a chunk is selected."""

import pytest

from databus_changes.snapshot.keys import ChunkKey, key_of, literal
from databus_core.events import Column


def column(kind, name="a"):
    return Column(name=name, type=kind, raw_type=kind)


def key(*descending):
    columns = tuple(column("int", name) for name, _ in zip("abc", descending, strict=False))
    return ChunkKey("PRIMARY", tuple(range(len(columns))), columns, descending, ())


@pytest.mark.parametrize(
    ("kind", "value", "sql"),
    [
        ("int", b"-5", "-5"),
        ("bigint", b"18446744073709551615", "18446744073709551615"),
        ("decimal", b"-0.50", "-0.50"),
        ("enum", b"3", "3"),
        ("varchar", "né'\\".encode(), "_utf8mb4 X'6ec3a9275c'"),
        ("varchar", b"", "_utf8mb4 X''"),
        ("varbinary", b"\x00\xff", "X'00ff'"),
        ("datetime", b"2026-01-02 03:04:05.000006", "'2026-01-02 03:04:05.000006'"),
        ("time", b"-838:59:59", "'-838:59:59'"),
        ("uuid", b"\x01" * 16, f"CAST(X'{'01' * 16}' AS UUID)"),
        ("double", b"0.1", "1.00000000000000006e-01"),
        ("float", b"0.1", "1.00000001490116119e-01"),
    ],
)
def test_a_literal_has_the_type_of_its_column(kind, value, sql):
    assert literal(column(kind), value) == sql


@pytest.mark.parametrize(("kind", "value"), [
    ("int", b"1 OR 1"), ("int", b"1e5"), ("decimal", b"1.2.3"), ("int", b""), ("date", b"2026' OR '"), ("time", b"now"),
])  # fmt: skip
def test_a_value_that_is_none_of_its_type_never_becomes_sql(kind, value):
    with pytest.raises(ValueError, match="value of a key"):
        literal(column(kind), value)


@pytest.mark.parametrize(
    ("descending", "after", "up_to"),
    [
        ((False,), "`a` > 1", "`a` <= 1"),
        ((True,), "`a` < 1", "`a` >= 1"),
        (
            (False, False),
            "`a` >= 1 AND (`a` > 1 OR (`a` = 1 AND `b` > 2))",
            "`a` <= 1 AND (`a` < 1 OR (`a` = 1 AND `b` <= 2))",
        ),
        (
            (False, True),
            "`a` >= 1 AND (`a` > 1 OR (`a` = 1 AND `b` < 2))",
            "`a` <= 1 AND (`a` < 1 OR (`a` = 1 AND `b` >= 2))",
        ),
        (
            (True, False, True),
            "`a` <= 1 AND (`a` < 1 OR (`a` = 1 AND (`b` > 2 OR (`b` = 2 AND `c` < 3))))",
            "`a` >= 1 AND (`a` > 1 OR (`a` = 1 AND (`b` < 2 OR (`b` = 2 AND `c` >= 3))))",
        ),
    ],
)
def test_conditions_follow_the_direction_of_each_column(descending, after, up_to):
    values = (b"1", b"2", b"3")[: len(descending)]
    assert (key(*descending).after(values), key(*descending).up_to(values)) == (after, up_to)


def test_rows_are_read_in_the_direction_of_the_index():
    assert key(True, False).order == "`a` DESC, `b`"


def test_the_key_of_a_row_is_in_the_order_of_the_index():
    assert key_of([b"1", b"2", b"3"], (2, 0)) == (b"3", b"1")
