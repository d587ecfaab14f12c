"""A topic that a Debezium connector wrote, read as the changes of a table."""

import asyncio
import json
import re
import secrets
import struct
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from common.connections import Execute, printing
from common.pipelines import MakePipeline, run_until_idle
from common.spark import leaves_sockets
from databus import names
from databus.errors import InvalidSettings
from databus.settings import Kafka
from databus_spark import TypeOptions, apply_changes, read_debezium_changes
from databus_spark.changes import DEFINITION, changes_in
from databus_spark.debezium import debezium_changes_in
from databus_spark.debezium_schema import find_newest
from databus_spark.types import DEFAULT_TYPES
from databus_wire.kafka_records import sequence_text
from devstack import Kind, Server
from golden.cases import KINDS, Case, path, records
from integration.dump_api import create_topic

pytestmark = [
    pytest.mark.lake,
    leaves_sockets,
]

#: name, type in Connect, and more of the schema
Column = tuple[str, str] | tuple[str, str, dict[str, Any]]
Record = tuple[Any, Any] | tuple[Any, Any, int]

ITEMS: list[Column] = [("id", "int32"), ("name", "string")]
GUIDE = (Path(__file__).parents[2] / "docs/guide/spark.md").read_text()
MICROSECONDS = TypeOptions(time_columns="microseconds")


def key(number: int, columns: Sequence[Column] = ITEMS[:1]) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": fields(columns)}, "payload": {"id": number}}


def value(
    operation: str,
    before: Sequence[Any] | None = None,
    after: Sequence[Any] | None = None,
    columns: Sequence[Column] = ITEMS,
    table: str = "items",
) -> dict[str, Any]:
    image = {"type": "struct", "fields": fields(columns), "optional": True}
    schema = {"type": "struct", "fields": [image | {"field": "before"}, image | {"field": "after"}]}
    known = [name for name, *_ in columns]
    rows = (None if row is None else dict(zip(known, row, strict=True)) for row in (before, after))
    payload = dict(zip(("before", "after"), rows, strict=True))
    return {"schema": schema, "payload": payload | {"source": {"db": "shop", "table": table}, "op": operation}}


def fields(columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [{"type": kind, **dict(*more), "field": name} for name, kind, *more in columns]


def encoded(part: Any) -> bytes | None:
    return part if part is None or isinstance(part, bytes) else msgspec.json.encode(part)


def changes(
    spark: SparkSession, *records: Record, types: TypeOptions = DEFAULT_TYPES, partitions: int = 1
) -> DataFrame:
    """Return the changes in records: key, value, and partition. The last row that is not a TRUNCATE is the newest."""
    rows = [
        (encoded(key), encoded(value), "shop.items", sum(partition), offset, datetime(2026, 1, 1, tzinfo=UTC), [])
        for offset, (key, value, *partition) in enumerate(records)
    ]
    found = (find_newest(consumed(*row[:2])) for row in reversed(rows))
    _, newest = next(each for each in found if each)
    return debezium_changes_in(kafka(spark, rows), newest, types, partitions=partitions)


def consumed(key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("shop.items", 0, 0, 5, 0, key, value, None, 0, 0, ())


def kafka(spark: SparkSession, rows: list[Any]) -> DataFrame:
    return spark.createDataFrame(
        rows,
        "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
        "headers array<struct<key string, value binary>>",
    )


def copied(spark: SparkSession, mirror: Path) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.read.format("delta").load(str(mirror)).drop("_seq").collect()))


# --- values -----------------------------------------------------------------------------------------------------------


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
    for key, value in rows:  # a record of the same schema begins with it, so its schema is not parsed
        assert key.startswith(newest.key_head.encode())
        assert value is None or value.startswith(newest.value_head.encode())
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


def semantic(name: str, **parameters: str) -> dict[str, Any]:
    return {"name": name, "parameters": {key.replace("_", "."): text for key, text in parameters.items()}}


def decimal(precision: int, scale: int) -> tuple[str, dict[str, Any]]:
    digits = {"scale": str(scale), "connect_decimal_precision": str(precision)}
    return "bytes", semantic("org.apache.kafka.connect.data.Decimal", **digits)


def bits(length: int) -> tuple[str, dict[str, Any]]:
    return "bytes", semantic("io.debezium.data.Bits", length=str(length))


def debezium(kind: str, name: str) -> tuple[str, dict[str, Any]]:
    return kind, semantic(f"io.debezium.{name}")


def connect(kind: str, name: str) -> tuple[str, dict[str, Any]]:
    return kind, semantic(f"org.apache.kafka.connect.data.{name}")


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


# --- records ----------------------------------------------------------------------------------------------------------


def test_the_last_change_of_a_row_counts_also_of_one_whose_key_changes(spark: SparkSession, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    records: list[Record] = [
        (key(1), value("r", after=(1, "one"))),
        (key(2), value("c", after=(2, "two"))),
        (key(2), value("u", (2, "two"), (2, None))),
        (key(1), value("d", before=(1, "one"))),
        (key(1), None),
        (key(9), value("c", after=(9, "one"))),
        (key(2), value("u", None, (2, "zwei"))),
    ]
    found = changes(spark, *records)
    assert [
        tuple(row) for row in found.select("id", "name", "_action", "_row", "_offset").orderBy("_seq", "_row").collect()
    ] == [
        (1, "one", "insert", 0, 0),
        (2, "two", "insert", 0, 1),
        (2, "two", "update_before", 0, 2),
        (2, None, "update_after", 1, 2),
        (1, "one", "delete", 0, 3),
        (9, "one", "insert", 0, 5),
        (2, "zwei", "update_after", 1, 6),
    ]
    assert found.select("_seq").first()[0] == sequence_text(0, 0).decode()
    for batch in (found.where("_offset < 3"), found, found.where("_offset > 1")):
        apply_changes(batch, str(mirror))
    assert copied(spark, mirror) == [(2, "zwei"), (9, "one")]


def test_truncate_needs_a_topic_of_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    records = [(key(1), value("c", after=(1, "old"))), (None, value("t")), (key(2), value("c", after=(2, "new")))]
    for batch in (records[:1], records):
        apply_changes(changes(spark, *batch), str(mirror))
    assert copied(spark, mirror) == [(2, "new")]
    with pytest.raises(
        PySparkException, match="offset 1 is a TRUNCATE, whose order in other partitions is not known: remove"
    ):
        changes(spark, *records, partitions=2).collect()


def test_columns_of_other_schemas_are_found_by_their_names(spark: SparkSession) -> None:
    odd = "o'`{0}.\\"
    unsigned = "bytes", semantic("org.apache.kafka.connect.data.Decimal", scale="0")  # of a BIGINT UNSIGNED
    before: list[Any] = [
        ("id", "int16"),
        ("gone", "string"),
        (odd, "string"),
        ("price", *decimal(8, 2)),
        ("set", "string", semantic("io.debezium.data.EnumSet", allowed="a")),
        ("total", *unsigned),
    ]
    after: list[Any] = [
        ("id", "int64"),
        (odd, "string"),
        ("price", *decimal(10, 2)),
        ("set", "string", semantic("io.debezium.data.EnumSet", allowed="a,b")),
        ("total", *unsigned),
        ("note", "string"),
    ]
    found = changes(
        spark,
        (key(1, before[:1]), value("c", after=(1, "x", "one", "B88=", "a", "B88="), columns=before)),
        (key(2, after[:1]), value("c", after=(2, "two", "B88=", "a,b", "B88=", "!"), columns=after)),
    )
    assert [tuple(row[:6]) for row in found.orderBy("_offset").collect()] == [
        (1, "one", Decimal("19.99"), "a", 1999, None),
        (2, "two", Decimal("19.99"), "a,b", 1999, "!"),
    ]


REFUSED: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = [
    (("int32",), ("string",)),
    (("string",), ("int32",)),
    (("string",), ("bytes",)),
    (("double",), ("float",)),
    (("boolean",), ("int16",)),
    (("int64",), debezium("int64", "time.Timestamp")),
    (debezium("int64", "time.MicroTimestamp"), debezium("int64", "time.Timestamp")),
    (("string",), debezium("string", "time.ZonedTimestamp")),
    (("bytes",), decimal(4, 2)),
    (decimal(8, 2), decimal(8, 4)),
    (decimal(8, 2), decimal(9, 2)),
    (bits(8), bits(9)),
]


def test_types_that_a_column_does_not_represent_end_the_query(spark: SparkSession) -> None:
    before, after = ([("id", "int32"), *((f"v{n}", *pair[side]) for n, pair in enumerate(REFUSED))] for side in (1, 0))
    nulls = [None] * len(REFUSED)
    columns = ", ".join(f"v{n}" for n in range(len(REFUSED)))
    found = changes(
        spark,
        (key(1), value("c", after=(1, *nulls), columns=before)),
        (key(2), value("c", after=(2, *nulls), columns=after)),
    )
    with pytest.raises(PySparkException, match=f"offset 0: the table has another definition of {columns}: restart"):
        found.collect()
    assert found.where("_offset = 1").count() == 1


def test_a_name_in_another_case_and_another_key_end_the_query(spark: SparkSession) -> None:
    shouted: list[Any] = [("id", "int32"), ("NAME", "string")]
    newest = (key(2), value("c", after=(2, "two")))
    for record, what in [
        ((key(1), value("c", after=(1, "one"), columns=shouted)), "name"),
        ((key(1, ITEMS), value("c", after=(1, "one"))), "the primary key"),
        ((None, value("c", after=(1, "one"))), "the primary key"),
    ]:
        with pytest.raises(PySparkException, match=f"offset 0: the table has another definition of {what}: restart"):
            changes(spark, record, newest).collect()


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (
            value("c", after=(1, "one"), table="orders"),
            r"is a change of the table shop\.orders, but the newest one is of shop\.items",
        ),
        (value("m"), "cannot be used: it is not a change of rows"),
        ({"schema": value("c")["schema"], "payload": {"ts_ms": 1}}, "cannot be used: it is not a change of rows"),
        (value("c", after=(1, "one"))["payload"], "cannot be used: it has no schema: set key.converter.schemas.enable"),
        (value("c"), "cannot be used: it lacks a row image"),
        (value("u", before=(1, "one")), "cannot be used: it lacks a row image"),
        (value("d", after=(1, "one")), "cannot be used: it lacks a row image"),
        (b"{", "cannot be used: it has no schema"),
        (b"", "cannot be used: it has no schema"),
        (msgspec.json.encode(value("c", after=(1, "one")))[:-1], "cannot be used: it has a value that does not fit"),
    ],
)
def test_a_record_that_cannot_be_used_ends_the_query_unless_it_is_left_out(
    spark: SparkSession, record: Any, text: str
) -> None:
    newest = (key(2), value("c", after=(2, "two")))
    found = changes(spark, (key(1), record), newest, newest)
    with pytest.raises(PySparkException, match=f"topic shop.items, partition 0, offset 0 {text}"):
        found.count()
    assert found.where("_offset <> 0").count() == 2


def test_a_topic_that_cannot_be_read_is_refused(spark: SparkSession) -> None:
    bare = value("c", after=(1, "one"))["payload"]
    for record, text in [
        ((None, bare), "topic shop.items has records without schemas: set key.converter.schemas.enable"),
        (
            (key(1)["payload"], value("c", after=(1, "one"))),
            "topic shop.items has records without schemas: set key.conv",
        ),
        (
            (key(1, [("other", "int32")]), value("c", after=(1, "one"))),
            r"key of shop\.items has the field other, which its rows",
        ),
        *(
            ((key(1), value("c", after=(1, None), columns=[("id", "int32"), ("v", *kind)])), text)
            for kind, text in [
                (decimal(39, 2), "column v has 39 digits, .* set decimal.handling.mode=string"),
                (("map",), "column v has the type map: leave it out"),
                (debezium("struct", "data.VariableScaleDecimal"), "column v has the type io.debezium.data.Var"),
            ]
        ),
        (
            (key(1), value("c", after=(1, None), columns=[("id", "int32"), ("_seq", "string")])),
            "has a column _seq, a name that",
        ),
    ]:
        with pytest.raises(InvalidSettings, match=text):
            changes(spark, record)


def test_a_table_without_a_key_is_read_but_not_applied(spark: SparkSession, tmp_path: Path) -> None:
    found = changes(spark, (None, value("c", after=(1, "one"))), (None, value("d", before=(1, "one"))))
    assert [row._action for row in found.orderBy("_seq").collect()] == ["insert", "delete"]
    with pytest.raises(InvalidSettings, match=r"shop\.items has no primary key"):
        apply_changes(found, str(tmp_path))


# --- Kafka ------------------------------------------------------------------------------------------------------------


async def test_a_range_of_a_topic_is_read(spark: SparkSession, kafka: Server) -> None:
    topic, connection = f"dbz-{secrets.token_hex(4)}", Kafka(bootstrap_servers=[kafka.url])

    async def read(**options: Any) -> DataFrame:
        return await asyncio.to_thread(read_debezium_changes, spark, topic=topic, kafka=connection, **options)

    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:

        async def send(record: Record) -> None:
            await producer.send_and_wait(topic, encoded(record[1]), encoded(record[0]))

        await send((key(1), {"schema": {"type": "struct"}, "payload": {"ts_ms": 1}}))
        with pytest.raises(
            InvalidSettings, match=f"topic {topic} has no change of a row that a Debezium connector wrote"
        ):
            await read()
        await send((key(1), value("c", after=(1, "one"))))
        early = await read(start={topic: {0: 1}})
        await send((key(2), value("c", after=(2, "two", "!"), columns=[*ITEMS, ("note", "string")])))
        await send((key(2), None))
        await send((None, value("t")))
        later, until = await read(start={topic: {0: 2}}), await read(start={topic: {0: 1}}, end={topic: {0: 2}})
        empty = await read(start={topic: {0: 2}}, end={topic: {0: 2}})
    assert [tuple(row[:2]) for row in early.collect()] == [tuple(row[:2]) for row in until.collect()] == [(1, "one")]
    assert early.columns[:3] == empty.columns[:3] == ["id", "name", "_seq"]
    assert [tuple(row) for row in later.select("id", "name", "note", "_action", "_query").collect()] == [
        (2, "two", "!", "insert", None),
        (None, None, None, "truncate", ""),
    ]
    assert empty.count() == 0
    with pytest.raises(InvalidSettings, match="a stream has no end"):
        await read(stream=True, end={topic: {0: 2}})


async def test_the_newest_of_all_partitions_has_the_columns(spark: SparkSession, kafka: Server) -> None:
    topic, connection = f"dbz-{secrets.token_hex(4)}", Kafka(bootstrap_servers=[kafka.url])
    await create_topic(kafka, topic, 2)
    wider = encoded(value("c", after=(2, "two", "!"), columns=[*ITEMS, ("note", "string")]))
    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
        for partition, time, record in [(0, 2000, wider), (1, 1000, encoded(value("c", after=(1, "one"))))]:
            await producer.send_and_wait(topic, record, encoded(key(1)), partition=partition, timestamp_ms=time)
        found = await asyncio.to_thread(read_debezium_changes, spark, topic=topic, kafka=connection)
        await producer.send_and_wait(topic, encoded(value("t")), partition=1)
        truncated = await asyncio.to_thread(read_debezium_changes, spark, topic=topic, kafka=connection)
    assert sorted(tuple(row[:3]) for row in found.collect()) == [(1, "one", None), (2, "two", "!")]
    with pytest.raises(PySparkException, match=f"topic {topic}, partition 1, offset 1 is a TRUNCATE"):
        truncated.collect()


@pytest.fixture
def source(mariadb: Server) -> Server:
    return mariadb


async def test_a_copy_follows_the_table_over_a_schema_change(
    spark: SparkSession, make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, tmp_path: Path
) -> None:
    pipeline = make_pipeline(source, schema, publisher={"routes": [{"match": ["*.*"], "format": "debezium-json"}]})
    await execute(
        "CREATE TABLE orders (id INT UNSIGNED PRIMARY KEY, open BOOL, total DECIMAL(20,4), at DATETIME(6), "
        "state ENUM('a','b'), data BLOB)"
    )
    await run_until_idle(pipeline)
    await execute(
        "INSERT INTO orders VALUES (1, true, -10.5, '2026-03-29 02:30:00.125', 'a', x'00ff'), "
        "(2, false, 1234567890123456.7891, NULL, NULL, NULL), (3, NULL, NULL, '1000-01-01', 'b', '')"
    )
    await execute("UPDATE orders SET id = 4, total = total + 1 WHERE id = 2")
    await execute("DELETE FROM orders WHERE id = 3")
    await run_until_idle(pipeline)
    mirror = tmp_path / "orders"
    variables = {"spark": spark, "kafka": Kafka(bootstrap_servers=[pipeline.kafka.url])}
    [code] = re.findall(r"```python\n([^`]*read_debezium_changes.*?)```", GUIDE, re.DOTALL)

    async def follow() -> None:
        name = f"{pipeline.name}.{schema}.orders"
        await asyncio.to_thread(exec, code.replace("dbserver1.shop.orders", name), variables)
        query = (
            variables["stream"]
            .writeStream.foreachBatch(lambda changes, _: apply_changes(changes, str(mirror)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        await asyncio.to_thread(query.awaitTermination)

    async def differences(*columns: str) -> list[Any]:
        """Compare the copy, whose columns are given as text, with the table."""
        texts = {
            "open": "string(int(open))",
            "at": "date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
            "data": "hex(data)",
        }
        copy = (
            spark.read.format("delta")
            .load(str(mirror))
            .selectExpr(*(texts.get(each, f"string({each})") for each in columns))
        )
        async with printing(source) as run:
            chosen = ", ".join("hex(data)" if each == "data" else each for each in columns)
            rows = await run(f"SELECT {chosen} FROM {schema}.orders")
        return sorted(
            set(map(tuple, copy.collect())) ^ {tuple(cell and cell.decode() for cell in row) for row in rows}, key=str
        )

    columns = ("id", "open", "total", "at", "state", "data")
    await follow()
    assert await differences(*columns) == []
    assert len(copied(spark, mirror)) == 2

    await execute("ALTER TABLE orders ADD note TEXT AFTER id, MODIFY id BIGINT")
    await execute("INSERT INTO orders VALUES (5, 'new', NULL, 0, NULL, NULL, NULL)")
    await execute("UPDATE orders SET total = 0 WHERE id = 1")
    await execute("DELETE FROM orders WHERE id = 4")
    await run_until_idle(pipeline)
    await follow()
    assert await differences(*columns, "note") == []
    assert [row[0] for row in copied(spark, mirror)] == [1, 5]
