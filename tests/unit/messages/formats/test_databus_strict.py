"""With `compat: strict`, values have the text of the Go server from which the `databus` format comes."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from databus_core.errors import PoisonError
from databus_core.events import Column, Table
from databus_messages.formats.databus_strict import strict_columns


def column(kind: str, raw_type: str = "", **more: Any) -> Column:
    return Column(name="c", type=kind, raw_type=raw_type or kind, **more)


def strict(column: Column, value: bytes) -> bytes:
    (convert,) = strict_columns(Table(schema="s", name="t", columns=(column,)))
    return convert(value) if convert else value


def labels(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


@pytest.mark.parametrize(
    ("kind", "exact", "original"),
    [
        (column("tinyint", unsigned=True), b"200", b"-56"),
        (column("tinyint", unsigned=True), b"127", b"127"),
        (column("smallint", unsigned=True), b"65535", b"-1"),
        (column("mediumint", unsigned=True), b"8388608", b"-8388608"),
        (column("int", unsigned=True), b"4294967295", b"-1"),
        (column("bigint", unsigned=True), b"18446744073709551615", b"-1"),
        (column("bigint"), b"-5", b"-5"),
        (column("year"), b"0000", b"1900"),
        (column("year"), b"2024", b"2024"),
        (column("float"), b"1.5", b"1.5000"),
        (column("float"), b"16777.123", b"16777.1230"),
        (column("float"), b"1.2345679e6", b"1234567.8750"),
        (column("double"), b"1e20", b"100000000000000000000.0000"),
        (column("double"), b"-0.00001", b"-0.0000"),
        (column("decimal", "decimal(10,2)"), b"19.99", b"19.9900"),
        (column("decimal", "decimal(20,0)"), b"12345678901234567890", b"12345678901234567168.0000"),
        (column("bit", "bit(64)"), b"18446744073709551615", b"-1"),
        (column("bit", "bit(8)"), b"255", b"255"),
        (column("enum", values=labels(255)), b"255", b"255"),
        (column("enum", values=labels(256)), b"1", b"256"),
        (column("set", values=labels(8)), b"128", b"128"),
        (column("set", values=labels(9)), b"257", b"257"),
        (column("set", values=labels(16)), b"1", b"256"),
        (column("set", values=labels(24)), b"1", b"65536"),
        (column("set", values=labels(33)), b"128", b"-9223372036854775808"),
        (column("varchar", charset="utf8mb4"), "é".encode(), "é".encode()),
        (column("varchar", charset="latin1"), "é€".encode(), b"\xe9\x80"),
        (column("text", charset="gbk"), "东京".encode(), "东京".encode("gbk")),
        (column("char", charset="utf16"), "é😀".encode(), "é😀".encode("utf-16-be")),
        (column("binary", "binary(4)"), b"a\0b\0", b"a\0b"),
        (column("varbinary", "varbinary(4)"), b"a\0", b"a\0"),
        (column("blob"), b"\0\xff", b"\0\xff"),
        (column("point"), b"\0\0\0\0\1", b"\0\0\0\0\1"),
        (column("uuid"), b"\1" * 14 + b"\0\0", b"\1" * 14),
        (column("date"), b"0000-00-00", b"0000-00-00"),
        (column("datetime", "datetime(3)"), b"2021-02-03 04:05:06.120", b"2021-02-03 04:05:06.120000"),
        (column("datetime", "datetime(3)"), b"2021-02-03 04:05:06.000", b"2021-02-03 04:05:06"),
        (column("datetime", "datetime(6)"), b"0000-00-00 00:00:00.000000", b"0000-00-00 00:00:00"),
        (column("time"), b"-838:59:59", b"-838:59:59"),
        (column("time", "time(2)"), b"-01:02:03.50", b"-01:02:03.500000"),
        (column("time", "time(2)"), b"-01:02:03.00", b"-01:02:03"),
        (column("time", "time(4)"), b"-00:00:00.9900", b"00:00:00"),
        *((column("time", f"time({digits})"), b"01:02:03.5", b"00:00:00") for digits in (1, 3, 5, 6)),
        (column("longtext", charset="utf8mb4"), b'{"b": 1}', b'{"b": 1}'),
    ],
)
def test_values_have_the_text_of_the_original_server(kind: Column, exact: bytes, original: bytes) -> None:
    assert strict(kind, exact) == original


@pytest.mark.parametrize(
    ("document", "original"),
    [
        ('{"b": [1, 2.0, 1.50], "a": null, "é": true}', '{"a":null,"b":[1,2,1.5],"é":true}'),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("-1.5e-7", "-1.5e-7"),
        ("0.000001", "0.000001"),
        ("18446744073709551615", "18446744073709551615"),
        ("-0.0", "-0"),
        (r'"<a>&\"\\\n\b\u2028"', r'"\u003ca\u003e\u0026\"\\\n\u0008\u2028"'),
        ("[]", "[]"),
        ("{}", "{}"),
    ],
)
def test_json_is_written_as_gos_encoder_writes_it(document: str, original: str) -> None:
    assert strict(column("json"), document.encode()).decode() == original


@pytest.fixture
def shanghai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("shanghai")
def test_timestamps_are_in_the_processs_time_zone_without_fraction() -> None:
    timestamp = column("timestamp", "timestamp(3)")
    assert strict(timestamp, b"2021-02-03 20:05:06.999") == b"2021-02-04 04:05:06"
    assert strict(timestamp, b"0000-00-00 00:00:00.000") == b"0000-00-00 00:00:00"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (column("varchar", charset="latin1"), "東".encode()),
        (column("enum"), b"1"),  # without labels
        (column("set"), b"1"),
    ],
)
def test_a_value_that_the_original_cannot_express_is_rejected_without_quoting_it(kind: Column, value: bytes) -> None:
    with pytest.raises(PoisonError, match=r"^column s\.t\.c has a value that `compat: strict` cannot express"):
        strict(kind, value)
