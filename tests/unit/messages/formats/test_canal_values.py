"""The text and the `sqlType` of values in canal's formats."""

import json

import pytest
from pydantic import ValidationError

from databus_core.events import Column, Table
from databus_messages.formats.canal import CanalOptions, sql_type
from databus_messages.formats.canal_values import RowTexts, row_writer


def column(raw_type: str) -> Column:
    kind = raw_type.partition("(")[0].split()[0]
    return Column(name="c", type=kind, raw_type=raw_type, unsigned="unsigned" in raw_type)


def text(raw_type: str, cell: bytes | None, time_zone: str = "UTC") -> str | None:
    table = Table(schema="s", name="t", columns=(column(raw_type),))
    (converted,) = RowTexts(table, time_zone).of([cell])
    assert json.loads(row_writer(table, time_zone).row([cell])) == {"c": converted}
    return converted


@pytest.mark.parametrize(
    ("raw_type", "cell", "expected", "expected_type"),
    [
        ("tinyint(4)", b"-128", "-128", -6),
        ("tinyint unsigned", b"127", "127", -6),
        ("tinyint unsigned", b"128", "128", 5),
        ("smallint", b"-32768", "-32768", 5),
        ("smallint unsigned", b"32768", "32768", 4),
        ("mediumint unsigned", b"16777215", "16777215", 4),
        ("int(11)", b"-2147483648", "-2147483648", 4),
        ("int unsigned", b"2147483647", "2147483647", 4),
        ("int unsigned", b"2147483648", "2147483648", -5),
        ("bigint", b"-9223372036854775808", "-9223372036854775808", -5),
        ("bigint unsigned", b"18446744073709551615", "18446744073709551615", 3),
        ("decimal(10,3)", b"0.000", "0.000", 3),
        ("float", b"1.5", "1.5", 7),
        ("double", b"1e20", "1.0E20", 8),
        ("bit(64)", b"18446744073709551615", "18446744073709551615", -7),
        ("enum('it''s','a,b')", b"0", "0", 4),
        ("set('a','b')", b"3", "3", -7),
        ("year(4)", b"0000", "0000", 12),
        ("date", b"0000-00-00", "0000-00-00", 91),
        ("time(6)", b"-838:59:59.000001", "-838:59:59.000001", 92),
        ("datetime(3)", b"2021-00-31 00:00:00.120", "2021-00-31 00:00:00.120", 93),
        ("timestamp", b"0000-00-00 00:00:00", "0000-00-00 00:00:00", 93),
        ("char(3)", "né".encode(), "né", 1),
        ("varchar(20)", "東京😀".encode(), "東京😀", 12),
        ("binary(3)", b"a\x00\x00", "a\x00\x00", 2004),
        ("blob", bytes(range(256)), "".join(map(chr, range(256))), 2004),
        ("geometry", b"\xe6\x10\x00\x00\x01", "\xe6\x10\x00\x00\x01", 2004),
        ("uuid", b"\x12>\x80\x00", "\x12>\x80\x00", 2004),
        ("longtext", b"", "", 2005),
        ("json", b'{"a": 52.0}', '{"a": 52.0}', 12),
        ("json", None, None, 1111),
        ("text", None, None, 2005),
        ("int unsigned", None, None, 4),
    ],
)
def test_a_value_has_canals_text_and_sql_type(
    raw_type: str, cell: bytes | None, expected: str | None, expected_type: int
) -> None:
    assert text(raw_type, cell) == expected
    assert sql_type(column(raw_type)).of(cell) == expected_type


@pytest.mark.parametrize(
    ("raw_type", "cell", "expected"),
    [
        ("double", b"0", "0.0"),
        ("double", b"-0", "-0.0"),
        ("double", b"7", "7.0"),
        ("double", b"-0.001", "-0.001"),
        ("double", b"0.00099", "9.9E-4"),
        ("double", b"9999999", "9999999.0"),
        ("double", b"10000000", "1.0E7"),
        ("double", b"-123456789.25", "-1.2345678925E8"),
        ("double", b"1.7976931348623157e308", "1.7976931348623157E308"),
        ("double", b"5e-324", "4.9E-324"),
        ("float", b"3.4028235e38", "3.4028235E38"),
        ("float", b"1e-45", "1.4E-45"),
        ("float", b"0.1", "0.1"),
    ],
)
def test_floats_are_written_as_in_java(raw_type: str, cell: bytes, expected: str) -> None:
    assert text(raw_type, cell) == expected


def test_timestamps_are_in_the_configured_time_zone() -> None:
    assert text("timestamp(3)", b"2021-02-03 20:05:06.120") == "2021-02-03 20:05:06.120"
    assert text("timestamp(3)", b"2021-02-03 20:05:06.120", "Asia/Shanghai") == "2021-02-04 04:05:06.120"
    assert text("timestamp", b"0000-00-00 00:00:00", "Asia/Shanghai") == "0000-00-00 00:00:00"
    assert text("datetime", b"2021-02-03 20:05:06", "Asia/Shanghai") == "2021-02-03 20:05:06"


@pytest.mark.parametrize("zone", ["Mars/Base", "../etc/passwd", ""])
def test_an_unknown_time_zone_is_rejected(zone: str) -> None:
    with pytest.raises(ValidationError, match="is not a time zone: use a name like Asia/Shanghai"):
        CanalOptions(time_zone=zone)
