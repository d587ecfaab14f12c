"""Schemas and values of column types in Debezium's messages, in each mode."""

import json
import struct
from base64 import b64encode
from typing import Any

import pytest

from databus_core.errors import PoisonError
from databus_core.events import Action, Row, Table
from databus_messages.formats.debezium.json import DebeziumJson
from databus_messages.formats.debezium.options import JsonOptions
from unit.messages.formats.debezium_samples import MYSQL, change, one_column

ZERO = b"0000-00-00"


def encoded(table: Table, row: Row, **options: str) -> tuple[dict[str, Any], Any]:
    """Return the schema of column `v`, without `field` and `optional`, and its value, decoded from JSON."""
    format_ = DebeziumJson(MYSQL, JsonOptions.model_validate(options))
    (record,) = format_.change(change(Action.INSERT, row, table=table))
    message = json.loads(record.value or b"")
    schema = message["schema"]["fields"][1]["fields"][0]
    assert (schema.pop("field"), schema.pop("optional")) == ("v", table.columns[0].nullable)
    return schema, message["payload"]["after"]["v"]


def semantic(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    schema = {"type": kind, "name": name, "version": 1}
    return schema | {"parameters": parameters} if parameters else schema


def decimal(scale: int, precision: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return semantic("bytes", "org.apache.kafka.connect.data.Decimal", **parameters)


def base64(data: bytes) -> str:
    return b64encode(data).decode()


UNSIGNED = {"unsigned": True}
LABELS = ("a", "l'arge", "b,c", "大")
ENUM = semantic("string", "io.debezium.data.Enum", allowed="a,l'arge,b\\,c,大")
SET = semantic("string", "io.debezium.data.EnumSet", allowed="a,b,c")


@pytest.mark.parametrize(
    ("kind", "raw_type", "attributes", "text", "schema", "expected"),
    [
        ("tinyint", "tinyint(1)", {}, b"1", {"type": "int16"}, 1),
        ("tinyint", "tinyint(1)", {"declared": "BOOL"}, b"-3", {"type": "boolean"}, True),
        ("tinyint", "tinyint(1)", {"declared": "BOOLEAN"}, b"0", {"type": "boolean"}, False),
        ("longtext", "longtext", {"declared": "JSON"}, b'{"a": 1}', semantic("string", "io.debezium.data.Json"),
         '{"a": 1}'),
        ("tinyint", "", UNSIGNED, b"255", {"type": "int16"}, 255),
        ("smallint", "", {}, b"-32768", {"type": "int16"}, -32768),
        ("smallint", "", UNSIGNED, b"65535", {"type": "int32"}, 65535),
        ("mediumint", "", {}, b"-8388608", {"type": "int32"}, -8388608),
        ("mediumint", "", UNSIGNED, b"16777215", {"type": "int32"}, 16777215),
        ("int", "", {}, b"-2147483648", {"type": "int32"}, -(2**31)),
        ("int", "", UNSIGNED, b"4294967295", {"type": "int64"}, 2**32 - 1),
        ("bigint", "", {}, b"-9223372036854775808", {"type": "int64"}, -(2**63)),
        ("bigint", "", UNSIGNED, b"18446744073709551615", {"type": "int64"}, 2**64 - 1),
        ("float", "", {}, b"-1.5", {"type": "float"}, -1.5),
        ("float", "float(7,3)", {}, b"-1234.567", {"type": "double"}, -1234.567),
        ("double", "", {}, b"1e20", {"type": "double"}, 1e20),
        ("decimal", "decimal(10,2)", {}, b"19.99", decimal(2, 10), "B88="),
        ("decimal", "decimal(10,2)", {}, b"-19.99", decimal(2, 10), "+DE="),
        ("decimal", "decimal(10,2)", {}, b"-0.01", decimal(2, 10), "/w=="),
        ("decimal", "decimal(3,0)", {}, b"0", decimal(0, 3), "AA=="),
        ("decimal", "decimal(3,0)", {}, b"1", decimal(0, 3), "AQ=="),
        ("decimal", "decimal(3,0)", {}, b"-1", decimal(0, 3), "/w=="),
        ("decimal", "decimal(3,0)", {}, b"127", decimal(0, 3), "fw=="),
        ("decimal", "decimal(3,0)", {}, b"128", decimal(0, 3), "AIA="),
        ("decimal", "decimal(3,0)", {}, b"-128", decimal(0, 3), "gA=="),
        ("decimal", "decimal(3,0)", {}, b"-129", decimal(0, 3), "/38="),
        ("bit", "bit(1)", {}, b"1", {"type": "boolean"}, True),
        ("bit", "bit(1)", {}, b"0", {"type": "boolean"}, False),
        ("bit", "bit(10)", {}, b"513", semantic("bytes", "io.debezium.data.Bits", length="10"), "AQI="),
        ("bit", "bit(64)", {}, b"18446744073709551614", semantic("bytes", "io.debezium.data.Bits", length="64"),
         base64(b"\xfe" + b"\xff" * 7)),
        ("char", "char(5)", {}, b'q"\\\n', {"type": "string"}, 'q"\\\n'),
        ("longtext", "", {}, "é大😀".encode(), {"type": "string"}, "é大😀"),
        ("binary", "binary(4)", {}, b"\xff\x00\x00\x00", {"type": "bytes"}, "/wAAAA=="),
        ("blob", "", {}, b"", {"type": "bytes"}, ""),
        ("json", "", {}, b'{"a": [1, 2.0], "b c": "d, e: \\" f"}', semantic("string", "io.debezium.data.Json"),
         '{"a":[1,2.0],"b c":"d, e: \\" f"}'),
        ("enum", "", {"values": LABELS}, b"3", ENUM, "b,c"),
        ("enum", "", {"values": LABELS}, b"0", ENUM, ""),
        ("set", "", {"values": ("a", "b", "c")}, b"5", SET, "a,c"),
        ("set", "", {"values": ("a", "b", "c")}, b"0", SET, ""),
        ("enum", "", {}, b"3", semantic("string", "io.debezium.data.Enum", allowed=""), "3"),
        ("set", "", {}, b"5", semantic("string", "io.debezium.data.EnumSet", allowed=""), "5"),
        ("year", "", {}, b"2024", semantic("int32", "io.debezium.time.Year"), 2024),
        ("year", "", {}, b"0000", semantic("int32", "io.debezium.time.Year"), 0),
        ("uuid", "", {}, bytes.fromhex("123e4567e89b12d3a456426655440000"), semantic("string", "io.debezium.data.Uuid"),
         "123e4567-e89b-12d3-a456-426655440000"),
        ("inet4", "", {}, b"\x0a\x00\x00\x00", {"type": "string"}, "10.0.0.0"),
        ("inet6", "", {}, bytes.fromhex("20010db8" + "00" * 11 + "01"), {"type": "string"}, "2001:db8::1"),
    ],
)  # fmt: skip
def test_each_type_has_its_schema_and_value(
    kind: str, raw_type: str, attributes: dict[str, Any], text: bytes, schema: dict[str, Any], expected: object
) -> None:
    assert encoded(one_column(kind, raw_type, **attributes), [text]) == (schema, expected)
    nullable = one_column(kind, raw_type, nullable=True, **attributes)
    assert encoded(nullable, [text]) == (schema, expected)
    assert encoded(nullable, [None]) == (schema, None)


def test_a_whole_double_is_not_written_as_an_integer() -> None:
    _, value = encoded(one_column("double"), [b"5"])
    assert isinstance(value, float)


def test_an_unsigned_bigint_can_be_a_decimal() -> None:
    precise = encoded(one_column("bigint", unsigned=True), [b"18446744073709551615"], bigint_unsigned="precise")
    assert precise == (decimal(0, 20), "AP//////////")
    assert encoded(one_column("bigint"), [b"-1"], bigint_unsigned="precise") == ({"type": "int64"}, -1)


def test_decimals_can_be_doubles_or_strings() -> None:
    table = one_column("decimal", "decimal(10,3)")
    assert encoded(table, [b"-12.500"], decimal="double") == ({"type": "double"}, -12.5)
    assert encoded(table, [b"-12.500"], decimal="string") == ({"type": "string"}, "-12.500")


@pytest.mark.parametrize(("mode", "expected"), [("base64", "+/8A"), ("base64-url-safe", "-_8A"), ("hex", "fbff00")])
def test_binary_values_can_be_strings(mode: str, expected: str) -> None:
    assert encoded(one_column("varbinary"), [b"\xfb\xff\x00"], binary=mode) == ({"type": "string"}, expected)


def test_geometries_have_wkb_and_their_srid_unless_it_is_0() -> None:
    point = struct.pack("<BIdd", 1, 1, 1.5, -2.25)
    schema, value = encoded(one_column("point"), [b"\x00" * 4 + point])
    assert [schema[attribute] for attribute in ("name", "version", "doc")] == [
        "io.debezium.data.geometry.Point", 1, "Geometry (POINT)"
    ]  # fmt: skip
    assert [(field["field"], field["type"], field["optional"]) for field in schema["fields"]] == [
        ("x", "double", False), ("y", "double", False), ("wkb", "bytes", True), ("srid", "int32", True),
    ]  # fmt: skip
    assert value == {"x": 1.5, "y": -2.25, "wkb": base64(point), "srid": None}
    schema, value = encoded(one_column("geometry", nullable=True), [(4326).to_bytes(4, "little") + point])
    assert (schema["name"], schema["doc"]) == ("io.debezium.data.geometry.Geometry", "Geometry")
    assert value == {"wkb": base64(point), "srid": 4326}


def test_a_vector_is_an_array_of_floats_in_shortest_form() -> None:
    schema, value = encoded(one_column("vector", "vector(2)"), [struct.pack("<2f", 0.1, -3)])
    items = {"type": "float", "optional": False}
    assert schema == {"type": "array", "items": items, "name": "io.debezium.data.FloatVector", "version": 1}
    assert value == [0.1, -3.0]


#: modes of `time`, in the order of the expected values below
MODES = ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
CONNECT, DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
DATE = ("int32", DEBEZIUM + "Date", 17424)
MICRO_TIME = ("int64", DEBEZIUM + "MicroTime", 14_706_789_000)
MICROS = ("int64", DEBEZIUM + "MicroTimestamp", 1_612_325_106_123_000)


@pytest.mark.parametrize(
    ("kind", "raw_type", "text", "expected"),
    [
        (
            "date",
            "date",
            b"2017-09-15",
            [DATE, ("int32", CONNECT + "Date", 17424), ("string", DEBEZIUM + "IsoDate", "2017-09-15Z"), DATE, DATE],
        ),
        (
            "time",
            "time(3)",
            b"04:05:06.789",
            [
                MICRO_TIME,
                ("int32", CONNECT + "Time", 14_706_789),
                ("string", DEBEZIUM + "IsoTime", "04:05:06.789Z"),
                MICRO_TIME,
                ("int64", DEBEZIUM + "NanoTime", 14_706_789_000_000),
            ],
        ),
        (
            "datetime",
            "datetime(3)",
            b"2021-02-03 04:05:06.123",
            [
                ("int64", DEBEZIUM + "Timestamp", 1_612_325_106_123),
                ("int64", CONNECT + "Timestamp", 1_612_325_106_123),
                ("string", DEBEZIUM + "IsoTimestamp", "2021-02-03T04:05:06.123Z"),
                MICROS,
                ("int64", DEBEZIUM + "NanoTimestamp", 1_612_325_106_123_000_000),
            ],
        ),
        (
            "datetime",
            "datetime(6)",
            b"2021-02-03 04:05:06.123000",
            [
                MICROS,
                ("int64", CONNECT + "Timestamp", 1_612_325_106_123),
                ("string", DEBEZIUM + "IsoTimestamp", "2021-02-03T04:05:06.123Z"),
                MICROS,
                ("int64", DEBEZIUM + "NanoTimestamp", 1_612_325_106_123_000_000),
            ],
        ),
        (
            "timestamp",
            "timestamp(3)",
            b"2021-02-03 04:05:06.780",
            [("string", DEBEZIUM + "ZonedTimestamp", "2021-02-03T04:05:06.780Z")] * 5,
        ),
    ],
)
def test_temporal_types_have_their_schema_and_value_in_every_mode(
    kind: str, raw_type: str, text: bytes, expected: list[tuple[str, str, object]]
) -> None:
    for mode, (type_, name, value) in zip(MODES, expected, strict=True):
        assert encoded(one_column(kind, raw_type), [text], time=mode) == (semantic(type_, name), value), mode


@pytest.mark.parametrize(
    ("kind", "raw_type", "text", "expected"),
    [
        ("datetime", "datetime", b"2021-02-03 04:05:06", 1_612_325_106_000),
        ("datetime", "datetime(6)", b"1969-12-31 23:59:59.999999", -1),
        ("datetime", "datetime(6)", b"9999-12-31 23:59:59.999999", 253_402_300_799_999_999),
        ("datetime", "datetime", b"0000-01-01 00:00:01", -62_167_219_199_000),
        ("date", "date", b"0001-01-01", -719_162),
        ("date", "date", b"0000-03-01", -719_468),
        ("time", "time", b"-838:59:59", -3_020_399_000_000),
        ("time", "time(6)", b"-00:00:00.000001", -1),
        ("time", "time(6)", b"838:59:59.000000", 3_020_399_000_000),
        ("timestamp", "timestamp", b"2021-02-03 04:05:06", "2021-02-03T04:05:06Z"),
    ],
)
def test_temporal_values_are_exact_even_at_the_ends_of_their_ranges(
    kind: str, raw_type: str, text: bytes, expected: object
) -> None:
    assert encoded(one_column(kind, raw_type), [text])[1] == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("date", [ZERO, b"2021-00-00", b"2021-02-31", b"0000-00-01"])
def test_an_impossible_date_is_null_in_a_nullable_column_and_the_epoch_in_any_other(mode: str, date: bytes) -> None:
    iso = mode == "isostring"
    for kind, raw_type, text, epoch in (
        ("date", "date", date, "1970-01-01Z" if iso else 0),
        ("datetime", "datetime(6)", date + b" 00:00:00.000000", "1970-01-01T00:00:00Z" if iso else 0),
        ("timestamp", "timestamp(3)", ZERO + b" 00:00:00.000", "1970-01-01T00:00:00.000Z"),
        ("timestamp", "timestamp", ZERO + b" 00:00:00", "1970-01-01T00:00:00Z"),
    ):
        assert encoded(one_column(kind, raw_type), [text], time=mode)[1] == epoch
        assert encoded(one_column(kind, raw_type, nullable=True), [text], time=mode)[1] is None


def test_isostring_keeps_negative_times_and_times_of_a_day_or_more() -> None:
    times = [encoded(one_column("time", "time(6)"), [text], time="isostring")[1] for text in (
        b"-838:59:59.000000", b"24:00:00.000000", b"-00:00:00.100000"
    )]  # fmt: skip
    assert times == ["-838:59:59Z", "24:00:00Z", "-00:00:00.1Z"]


@pytest.mark.parametrize(
    ("text", "milliseconds"), [(b"00:00:00", 0), (b"23:59:59", 86_399_000), (b"24:00:00", 86_400_000)]
)
def test_connect_keeps_times_up_to_the_end_of_the_day(text: bytes, milliseconds: int) -> None:
    assert encoded(one_column("time"), [text], time="connect")[1] == milliseconds


@pytest.mark.parametrize(
    ("table", "text", "mode", "message"),
    [
        (one_column("time"), b"-00:00:01", "connect", "column v: time=connect cannot express"),
        (one_column("time"), b"24:00:01", "connect", "column v: time=connect cannot express"),
        (one_column("time", "time(6)"), b"24:00:00.000001", "connect", "column v: time=connect cannot express"),
        (one_column("datetime"), b"2262-04-12 00:00:00", "nanoseconds", "column v: with time=nanoseconds"),
        (one_column("datetime"), b"1000-01-01 00:00:00", "nanoseconds", "column v: with time=nanoseconds"),
        (one_column("xmltype"), b"", "connect", "column v: Debezium has no type for xmltype"),
    ],
)
def test_a_value_that_the_mode_cannot_express_or_an_unknown_type_is_rejected(
    table: Table, text: bytes, mode: str, message: str
) -> None:
    with pytest.raises(PoisonError, match=message):
        encoded(table, [text], time=mode)


@pytest.mark.parametrize(("kind", "value"), [("point", b""), ("point", bytes(24)), ("vector", b"123")])
def test_a_truncated_value_is_rejected(kind: str, value: bytes) -> None:
    with pytest.raises(PoisonError, match=r"^a row of test\.t1 has a value that does not fit its column"):
        encoded(one_column(kind), [value])
