"""The values in a topic that a Debezium connector wrote, for each type of a column."""

import json
import struct
from base64 import b64encode
from datetime import date, datetime
from decimal import Decimal
from ipaddress import ip_address
from typing import Any
from uuid import UUID

import msgspec
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from common.spark import leaves_sockets
from databus_core import names
from databus_spark import TypeOptions
from databus_spark.changes import DEFINITION, changes_in
from databus_spark.debezium_schema import find_newest
from databus_wire.kafka_records import sequence_text
from devstack import Kind
from golden.cases import KINDS, Case, path, records
from integration.debezium_records import bits, changes, connect, consumed, debezium, decimal, kafka, key, value

pytestmark = [pytest.mark.lake, leaves_sockets]

MICROSECONDS = TypeOptions(time_columns="microseconds")


class Line(msgspec.Struct):
    """A line of a golden case."""

    value: msgspec.Raw
    key: msgspec.Raw = msgspec.Raw(b"null")
    topic: str = ""


def golden(spark: SparkSession, kind: Kind, table: str, options: dict[str, str]) -> DataFrame:
    """Return the changes that the records of the format debezium-json have for a real server's binlog."""
    lines = records(kind, Case("debezium-json", tuple(options.items()), table)).splitlines()
    decoded = (msgspec.json.decode(line, type=Line) for line in lines)
    parts = [[bytes(part) for part in (line.key, line.value)] for line in decoded if not line.topic]
    rows = [tuple(None if part == b"null" else part for part in record) for record in parts]
    _, newest = find_newest(consumed(*rows[0])) or pytest.fail("the first record is no row")
    for its_key, its_value in rows:  # a record of the same schema begins with it, so its schema is not parsed
        assert its_key.startswith(newest.key_head.encode())
        assert its_value is None or its_value.startswith(newest.value_head.encode())
    return changes(spark, *rows, types=MICROSECONDS)


def expected(spark: SparkSession, kind: Kind, table: str) -> DataFrame:
    """Return the same changes from the records of the format databus."""
    lines = [json.loads(line) for line in path(kind, Case("databus")).read_bytes().splitlines()]
    mine = [line for line in lines if (line["value"].get("Table") or {}).get("Name") == table]
    compact = [
        tuple(json.dumps(line[part], separators=(",", ":"), ensure_ascii=False).encode() for part in ("key", "value"))
        for line in mine
    ]
    rows = [
        (*parts, "t", 0, offset, datetime(2026, 1, 1), [(names.SEQUENCE_HEADER, sequence_text(offset, 0))])
        for offset, parts in enumerate(compact)
    ]
    definition = json.dumps(mine[-1]["value"]["Table"], separators=(",", ":"), ensure_ascii=False)
    return changes_in(kafka(spark, rows), definition, MICROSECONDS).where("_row is not null")


def as_connect(name: str, raw_type: str, value: Any) -> Any:  # noqa: PLR0911 – one case for each type
    """Return a value of the lake as the connectors' types have it, where they are other types."""
    match raw_type.partition("(")[0]:
        case _ if value is None:
            return None
        case "bit" | "tinyint" if raw_type in {"bit(1)", "tinyint(1)"}:
            return bool(value)
        case "decimal":
            return str(value)
        case "vector":
            return [number for (number,) in struct.iter_unpack("<f", value)]
        case "uuid":
            return str(UUID(bytes=bytes(value)))
        case "inet4" | "inet6":
            return str(ip_address(bytes(value)))
        case _ if name == "js":  # the connectors write it without spaces
            return json.loads(value)
    return value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("table", "time"),
    [
        ("types", "adaptive_time_microseconds"),
        ("types", "isostring"),
        ("types", "microseconds"),
        ("own", "adaptive_time_microseconds"),
    ],
)
def test_values_are_those_of_the_database(spark: SparkSession, kind: Kind, table: str, time: str) -> None:
    ours = expected(spark, kind, table)
    theirs = golden(spark, kind, table, {"decimal": "string", "bigint_unsigned": "precise", "time": time})
    columns = json.loads(ours.schema["_seq"].metadata[DEFINITION])["Columns"]
    found, wanted = (each.orderBy("_seq", "_row").collect() for each in (theirs, ours))
    assert len(found) == len(wanted) > 3
    for row, other in zip(found, wanted, strict=True):
        assert row._action == other._action
        for column in columns:
            name = column["Name"]
            value = json.loads(row[name]) if name == "js" and row[name] else row[name]
            assert value == as_connect(name, column["RawType"], other[name]), name


def b64(number: int, order: str = "big", signed: bool = True) -> str:
    """Encode a number as the connectors do, in as few bytes as possible."""
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return b64encode(number.to_bytes(size, order, signed=signed)).decode()  # type: ignore[arg-type]


POINT = ("struct", {"name": "io.debezium.data.geometry.Point"})
#: type in Connect → type in the lake, values in JSON and in the lake
VALUES: list[tuple[tuple[Any, ...], str, dict[Any, Any]]] = [
    (("int8",), "bigint", {-128: -128}),
    (("int64",), "bigint", {-(2**63): -(2**63), 2**63 - 1: 2**63 - 1}),
    (("boolean",), "boolean", {True: True, False: False}),
    (("double",), "double", {5e-324: 5e-324, -1.5: -1.5}),
    (("string",), "string", {'日😀 "\\\n': '日😀 "\\\n', "": ""}),
    (("bytes",), "binary", {"gAD/Cg==": b"\x80\x00\xff\n", "": b""}),
    (decimal(10, 2), "decimal(10,2)", {"B88=": Decimal("19.99"), "+DE=": Decimal("-19.99"), "AA==": Decimal(0)}),
    (
        decimal(38, 0),
        "decimal(38,0)",
        {b64(n): Decimal(n) for n in (10**38 - 1, 1 - 10**38, 2**64, 2**64 - 1, -(2**64), -1, 127, 128, -128, -129)},
    ),
    (decimal(38, 38), "decimal(38,38)", {b64(1 - 10**38): Decimal("-0." + "9" * 38), b64(1): Decimal("1e-38")}),
    (bits(9), "bigint", {"/wE=": 511, "AAE=": 256}),
    (bits(63), "bigint", {b64(2**63 - 1, "little"): 2**63 - 1}),
    (bits(64), "decimal(20,0)", {"/////////38=": Decimal(2**63 - 1), "//////////8=": Decimal(2**64 - 1)}),
    (debezium("int32", "time.Year"), "bigint", {0: 0, 2155: 2155}),
    (debezium("int32", "time.Date"), "date", {-719162: date(1, 1, 1), 2932896: date(9999, 12, 31)}),
    (connect("int32", "Date"), "date", {0: date(1970, 1, 1)}),
    (debezium("string", "time.IsoDate"), "date", {"2017-09-15Z": date(2017, 9, 15)}),
    (debezium("int64", "time.Timestamp"), "timestamp_ntz", {-1: datetime(1969, 12, 31, 23, 59, 59, 999000)}),
    (connect("int64", "Timestamp"), "timestamp_ntz", {1: datetime(1970, 1, 1, 0, 0, 0, 1000)}),
    (
        debezium("int64", "time.MicroTimestamp"),
        "timestamp_ntz",
        {253402300799999999: datetime(9999, 12, 31, 23, 59, 59, 999999), -62135596800000000: datetime(1, 1, 1)},
    ),
    (debezium("int64", "time.NanoTimestamp"), "timestamp_ntz", {-1000: datetime(1969, 12, 31, 23, 59, 59, 999999)}),
    (
        debezium("string", "time.IsoTimestamp"),
        "timestamp_ntz",
        {
            "2021-02-03T04:05:06Z": datetime(2021, 2, 3, 4, 5, 6),
            "2021-02-03T04:05:06.5Z": datetime(2021, 2, 3, 4, 5, 6, 500000),
        },
    ),
    (
        debezium("string", "time.ZonedTimestamp"),
        "timestamp",
        {"2021-02-03T04:05:06.789Z": "2021-02-03 04:05:06.789", "2021-02-03T04:05:06+02:00": "2021-02-03 02:05:06"},
    ),
    (
        debezium("int64", "time.MicroTime"),
        "string",
        {-3020399000000: "-838:59:59", 0: "00:00:00", 1: "00:00:00.000001", -14706500000: "-04:05:06.500000"},
    ),
    (debezium("int64", "time.NanoTime"), "string", {-1000: "-00:00:00.000001"}),
    (connect("int32", "Time"), "string", {86400000: "24:00:00", 1: "00:00:00.001000"}),
    (debezium("string", "time.IsoTime"), "string", {"-838:59:59Z": "-838:59:59", "04:05:06.5Z": "04:05:06.500000"}),
    (debezium("string", "data.Enum"), "string", {"a": "a", "": ""}),
    (debezium("string", "data.Json"), "string", {'{"a":1.50}': '{"a":1.50}'}),
    (debezium("array", "data.FloatVector"), "array<float>", {(1.5, -2.5): [1.5, -2.5], (): []}),
]


def test_each_type_of_connect_has_its_values_in_any_time_zone(spark: SparkSession) -> None:
    columns: list[Any] = [("id", "int32"), *((f"c{n}", *kind) for n, (kind, *_) in enumerate(VALUES)), ("at", *POINT)]
    count = max(len(values) for *_, values in VALUES)
    wkb = {"wkb": "AQE=", "x": 1.0, "y": 2.0}
    points = [wkb | {"srid": 4326}, wkb | {"srid": None}] + [None] * (count - 2)
    written = [[*values, *[None] * (count - len(values))] for *_, values in VALUES]
    read = [[*values.values(), *[None] * (count - len(values))] for *_, values in VALUES]
    rows = list(zip(range(count), *written, points, strict=True))
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    found = changes(session, *((key(row[0]), value("r", after=row, columns=columns)) for row in rows))
    assert [kind for _, kind in found.dtypes[1 : len(VALUES) + 2]] == [kind for _, kind, _ in VALUES] + ["binary"]
    zoned = [
        f"cast(to_utc_timestamp({name}, 'Asia/Tokyo') as string) {name}" if kind == "timestamp" else name
        for name, kind in found.dtypes
    ]
    collected = [list(row[1 : len(VALUES) + 2]) for row in found.selectExpr(*zoned).orderBy("id").collect()]
    expected_points = [b"\xe6\x10\x00\x00\x01\x01", b"\x00\x00\x00\x00\x01\x01"] + [None] * (count - 2)
    assert collected == [list(row) for row in zip(*read, expected_points, strict=True)]


def test_options_choose_the_types_of_time_and_json(spark: SparkSession) -> None:
    columns: list[Any] = [
        ("id", "int32"),
        ("t", *debezium("int64", "time.MicroTime")),
        ("js", *debezium("string", "data.Json")),
    ]
    types = TypeOptions("string", "microseconds", "variant")
    found = changes(spark, (key(1), value("c", after=(1, -1, "[1.50]"), columns=columns)), types=types)
    assert found.dtypes[1:3] == [("t", "bigint"), ("js", "variant")]
    assert [*found.selectExpr("t", "to_json(js)").collect()[0]] == [-1, "[1.5]"]


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (("int32",), "1"),
        (("int64",), 2**63),
        (("bytes",), "a*"),
        (decimal(4, 2), b64(10000)),
        (decimal(38, 2), b64(10**38)),
        (decimal(38, 2), b64(2**130)),
        (decimal(4, 2), 19.99),
        (bits(8), b64(2**70, "little")),
        (debezium("int64", "time.NanoTime"), 1),
        (debezium("string", "time.IsoDate"), "2021-00-00Z"),
        (debezium("string", "time.ZonedTimestamp"), "2021-02-03T04:05:06"),
        (debezium("int64", "time.Timestamp"), 2**62),
        (POINT, {"wkb": None}),
    ],
)
def test_a_value_that_does_not_fit_its_schema_ends_the_query(spark: SparkSession, kind: Any, wrong: Any) -> None:
    found = changes(spark, (key(1), value("c", after=(1, wrong), columns=[("id", "int32"), ("v", *kind)])))
    with pytest.raises(
        PySparkException,
        match=r"topic shop\.items, partition 0, offset 0.* a value that does not fit its schema: leave",
    ):
        found.collect()
    assert found.where("_offset <> 0").collect() == []


def test_a_value_that_the_binlog_lacked_ends_the_query(spark: SparkSession) -> None:
    lacked = "__debezium_unavailable_value"
    for kind, text in [
        (("string",), lacked),
        (("string",), lacked.encode().hex()),
        (("string",), b64encode(lacked.encode()).decode()),
        (("bytes",), b64encode(lacked.encode()).decode()),
        (debezium("string", "data.Json"), lacked),
    ]:
        row = value("u", (1, None), (1, text), columns=[("id", "int32"), ("v", *kind)])
        for types in (TypeOptions(), TypeOptions(json_columns="variant")):
            with pytest.raises(
                PySparkException, match="offset 0: column v has no value, because the binlog lacked it: set binlog"
            ):
                changes(spark, (key(1), row), types=types).collect()
