"""Python values of exact texts, and their Arrow values."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import pytest

from databus.values import converter, is_bytes, labels_of
from databus_core.events import Column

ROME = "2026-11-27 10:00:00"
VALUES: list[tuple[str, bytes, Any]] = [
    ("bigint(20) unsigned", b"18446744073709551615", 2**64 - 1),
    ("tinyint(1)", b"-1", -1),
    ("year(4)", b"0000", 0),
    ("bit(64)", b"18446744073709551615", 2**64 - 1),
    ("decimal(65,30)", b"-0." + b"0" * 29 + b"1", Decimal("-1e-30")),
    ("double", b"1e20", 1e20),
    ("float(7,3)", b"0.1", 0.1),
    ("date", b"2026-11-27", date(2026, 11, 27)),
    ("date", b"0000-00-00", "0000-00-00"),
    ("date", b"2026-00-10", "2026-00-10"),
    ("datetime(6)", f"{ROME}.000001".encode(), datetime(2026, 11, 27, 10, 0, 0, 1)),
    ("datetime", b"0000-00-00 00:00:00", "0000-00-00 00:00:00"),
    ("timestamp(3)", f"{ROME}.500".encode(), datetime(2026, 11, 27, 10, 0, 0, 500_000, tzinfo=UTC)),
    ("timestamp", b"0000-00-00 00:00:00", "0000-00-00 00:00:00"),
    ("time(6)", b"-838:59:59.000001", -timedelta(hours=838, minutes=59, seconds=59, microseconds=1)),
    ("time", b"00:00:01", timedelta(seconds=1)),
    ("varchar(9)", "é\0".encode(), "é\0"),
    ("longtext", b"", ""),
    ("json", b'{"a": [1, 2.5, null], "b": 52.0}', {"a": [1, 2.5, None], "b": 52.0}),
    ("binary(2)", b"a\0", b"a\0"),
    ("point", b"\0\0\0\0", b"\0\0\0\0"),
    ("vector(2)", bytes.fromhex("0000803f0000003f"), [1.0, 0.5]),
    ("uuid", bytes(range(16)), UUID(bytes=bytes(range(16)))),
    ("inet4", bytes([127, 0, 0, 1]), IPv4Address("127.0.0.1")),
    ("inet6", bytes(15) + b"\1", IPv6Address("::1")),
    ("some_new_type", b"\xff", b"\xff"),
]


def column(raw_type: str, *labels: str) -> Column:
    return Column(name="c", type="", raw_type=raw_type, values=labels)


@pytest.mark.parametrize(("raw_type", "text", "value"), VALUES, ids=lambda each: str(each)[:20])
def test_a_text_becomes_the_python_value(raw_type: str, text: bytes, value: Any) -> None:
    found = converter(column(raw_type))(text)
    assert (type(found), found) == (type(value), value)


def test_labels() -> None:
    kind, chosen = column("enum('a','b')", "a", "b"), column("set('a','b','c')", "a", "b", "c")
    assert [converter(kind)(each) for each in (b"0", b"1", b"2")] == ["", "a", "b"]
    assert [converter(chosen)(each) for each in (b"0", b"5")] == [set(), {"a", "c"}]
    assert labels_of(chosen)(6) == "b,c"
    for wrong in (kind, chosen):
        with pytest.raises(ValueError, match="has a value without a label"):
            converter(wrong)(b"8")


def test_only_columns_of_bytes_have_bytes_as_text() -> None:
    kinds = [raw_type for raw_type, _, _ in VALUES if is_bytes(column(raw_type))]
    assert kinds == ["binary(2)", "point", "vector(2)", "uuid", "inet4", "inet6", "some_new_type"]
