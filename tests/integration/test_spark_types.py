"""The lake has the value that the database has, for every type of column, from the stream and from a dump."""

import json
import struct
from base64 import b64decode
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from common.column_types import tables
from common.spark import leaves_sockets
from databus_core import names
from databus_core.definitions import decode_definition
from databus_core.events import Action, Table
from databus_messages.formats.databus import Encoder
from databus_spark.compare import differences
from databus_spark.messages import decode_dump_lines, decode_records
from databus_spark.mirror_columns import SEQUENCE, mirror_columns
from databus_spark.types import TypeOptions, lost_values, typed_cells
from databus_wire.kafka_records import sequence_text
from devstack import Kind
from golden.cases import KINDS, Case, path
from integration.sink_peers import describe_table

pytestmark = [
    pytest.mark.lake,
    leaves_sockets,
]

MOST = "9" * 35 + "." + "9" * 30
LABELS = ",".join(f"'m{number}'" for number in range(64))


def float32(number: float) -> float:
    """Return the FLOAT that is next to a number."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


#: raw type → canonical text (docs/reference/values.md) → the lake's value
VALUES: dict[str, dict[bytes, Any]] = {
    "tinyint(4)": {b"-128": -128, b"127": 127},
    "tinyint(1)": {b"1": 1, b"-1": -1},
    "tinyint(3) unsigned": {b"255": 255},
    "smallint": {b"-32768": -32768},
    "mediumint(8) unsigned": {b"16777215": 16777215},
    "int(8) unsigned zerofill": {b"42": 42, b"4294967295": 4294967295},
    "bigint(20)": {b"-9223372036854775808": -(2**63), b"9223372036854775807": 2**63 - 1},
    "bigint unsigned": {b"18446744073709551615": Decimal(2**64 - 1), b"0": Decimal(0)},
    "bit(1)": {b"1": 1, b"0": 0},
    "bit(63)": {b"9223372036854775807": 2**63 - 1},
    "bit(64)": {b"18446744073709551615": Decimal(2**64 - 1)},
    "year(4)": {b"2155": 2155, b"0": 0},
    "decimal(1,0)": {b"-9": Decimal(-9)},
    "decimal(30,30)": {b"0." + b"1".zfill(30): Decimal("1e-30")},
    "decimal(38,9) unsigned": {b"9" * 29 + b".000000001": Decimal("9" * 29 + ".000000001")},
    "decimal(39,0)": {b"-" + b"9" * 39: "-" + "9" * 39},
    "decimal(65,30)": {MOST.encode(): MOST, b"-0." + b"1".zfill(30): "-0." + "1".zfill(30)},
    "float": {b"0.1": float32(0.1), b"-0": -0.0, b"1e38": float32(1e38), b"-1.17549e-38": float32(-1.17549e-38)},
    "float(7,3)": {b"-1234.125": -1234.125},
    "double": {b"-0": -0.0, b"5e-324": 5e-324, b"1.7976931348623157e308": 1.7976931348623157e308, b"0.1": 0.1},
    "date": {b"0001-01-01": date(1, 1, 1), b"9999-12-31": date(9999, 12, 31), b"1582-10-10": date(1582, 10, 10)},
    "datetime": {b"1000-01-01 00:00:00": datetime(1000, 1, 1)},
    "datetime(6)": {b"9999-12-31 23:59:59.999999": datetime(9999, 12, 31, 23, 59, 59, 999999)},
    "timestamp": {b"1970-01-01 00:00:01": "1970-01-01 00:00:01", b"2106-02-07 06:28:15": "2106-02-07 06:28:15"},
    "timestamp(2)": {b"2024-03-31 02:30:00.50": "2024-03-31 02:30:00.5"},
    "time": {b"838:59:59": "838:59:59", b"-01:00:00": "-01:00:00"},
    "time(6)": {b"-838:59:58.999999": "-838:59:58.999999", b"-00:00:00.000001": "-00:00:00.000001"},
    "char(10)": {"é ÿ".encode(): "é ÿ", b"": ""},
    "varchar(60)": {"日😀 '\"\\ \x00\n".encode(): "日😀 '\"\\ \x00\n"},
    "varchar(1000) /*M!100301 COMPRESSED*/": {b"packed": "packed"},
    "tinytext": {b" ": " "},
    "text": {b"x" * 65535: "x" * 65535},
    "mediumtext": {b"\r\n": "\r\n"},
    "longtext": {b'{"b":1, "a":[1,2.50]}': '{"b":1, "a":[1,2.50]}'},
    "json": {b'{"b": 1.50, "a": [null]}': '{"b": 1.50, "a": [null]}', b"null": "null"},
    "binary(4)": {b"a\x00\x00\x00": b"a\x00\x00\x00"},
    "varbinary(8)": {b"\x80\x00\xff\n": b"\x80\x00\xff\n", b"": b""},
    **{f"{size}blob": {b"\x00\xff'": b"\x00\xff'"} for size in ("tiny", "", "medium", "long")},
    "enum('a','it\\s','ß')": {b"3": "ß", b"2": "it\\s", b"0": ""},
    "set('x','y z','é')": {b"5": "x,é", b"0": "", b"7": "x,y z,é"},
    f"set({LABELS})": {str(2**64 - 1).encode(): LABELS.replace("'", ""), str(2**63).encode(): "m63"},
    **{
        kind: {b"\xe6\x10\x00\x00\x01": b"\xe6\x10\x00\x00\x01"}
        for kind in (
            *("geometry", "point", "linestring", "polygon", "geomcollection", "geometrycollection"),
            *("multipoint", "multilinestring", "multipolygon", "uuid", "inet4", "inet6", "vector(3)"),
        )
    },
}
#: values that the lake's types do not have
LOST: dict[str, list[bytes]] = {
    "date": [b"0000-00-00", b"2021-00-00"],
    "datetime(1)": [b"0000-00-00 00:00:00.0", b"2021-12-00 23:00:00.0"],
    "timestamp(3)": [b"0000-00-00 00:00:00.000"],
}
TEXT = TypeOptions(zero_dates="string")
#: options → raw type → canonical text → the lake's value
CHOSEN: dict[TypeOptions, dict[str, dict[bytes, Any]]] = {
    TypeOptions(): VALUES,
    TEXT: {
        **{kind: {text: text.decode() for text in texts} for kind, texts in LOST.items()},
        "datetime(6)": {b"2024-02-29 00:00:00.500000": "2024-02-29 00:00:00.500000"},
    },
    TypeOptions(time_columns="microseconds"): {
        "time": {b"838:59:59": 3020399_000000, b"-00:00:01": -1_000000, b"00:00:00": 0},
        "time(1)": {b"-00:00:00.1": -100000},
        "time(6)": {b"-838:59:58.999999": -3020398_999999, b"00:00:00.000001": 1},
    },
    TypeOptions(json_columns="variant"): {
        "json": {
            '{"b": [1.50, 1e20, "é\\n"], "a": {}}'.encode(): '{"a":{},"b":[1.5,1.0E20,"é\\n"]}',
            b"18446744073709551615": "18446744073709551615",
            b"null": "null",  # which is not NULL
        },
        "longtext": {b"[1]": "[1]"},
    },
}


@pytest.mark.parametrize("types", CHOSEN, ids=str)
def test_every_value_is_that_of_the_database(spark: SparkSession, tmp_path: Path, types: TypeOptions) -> None:
    values = CHOSEN[types]
    table = describe_table("t", *(f"c{number} {kind}" for number, kind in enumerate(values)), key=())
    rows, expected = (
        in_rows([list(each) for each in values.values()]),
        in_rows([[*v.values()] for v in values.values()]),
    )
    message = Encoder().rows_value(table, Action.INSERT, rows)
    (tmp_path / "dump.jsonl").write_bytes(message)

    streamed = typed(streamed_cells(spark, [message]), table, types)
    loaded = typed(decode_dump_lines(spark, [str(tmp_path / "dump.jsonl")]), table, types)

    assert list(map(repr, streamed)) == list(map(repr, expected))
    assert loaded == streamed


def test_the_matrix_of_the_decoder_has_no_other_types() -> None:
    known = {kind.partition("(")[0].partition(" ")[0] for kind in VALUES}
    matrix = {column.type.lower() for kind in KINDS for table in tables(kind) for column in table.columns}
    golden = {column.raw_type for kind in KINDS for table, _ in golden_messages(kind) for column in table.columns}
    found = {kind.partition("(")[0].partition(" ")[0] for kind in matrix | golden}
    assert found - known == {"boolean"}, "which is a tinyint(1)"


def test_only_zero_dates_become_null_and_are_found(spark: SparkSession) -> None:
    table = describe_table("t", "id int(11)", *(f"c{number} {kind}" for number, kind in enumerate(LOST)))
    rows = in_rows([[b"1", b"2"], *LOST.values()])
    cells = streamed_cells(spark, [Encoder().rows_value(table, Action.INSERT, rows)])
    lost = [f"count_if({text})" for text in lost_values(table, TypeOptions()).values()]

    assert typed(cells, table, TypeOptions()) == [[1, None, None, None], [2, None, None, None]]
    assert [*cells.selectExpr(*lost).collect()[0]] == [2, 2, 1]
    assert lost_values(table, TEXT) == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["types", "own"])
def test_no_value_that_a_server_has_logged_is_lost_but_zero_dates(spark: SparkSession, kind: Kind, name: str) -> None:
    logged = [(table, value) for table, value in golden_messages(kind) if table.name == name and "Rows" in value]
    [table] = {table for table, _ in logged}
    texts = [[text and b64decode(text) for text in row] for _, value in logged for row in value["Rows"]]

    found = typed(streamed_cells(spark, [encoded(value) for _, value in logged]), table, TypeOptions())

    assert len(found) == len(texts) > 3
    for column, *values in zip(table.columns, zip(*texts, strict=True), zip(*found, strict=True), strict=True):
        for text, value in zip(*values, strict=True):
            is_zero = text and column.raw_type.startswith(("date", "timestamp")) and b"-00" in text
            assert (value is None) == (text is None or bool(is_zero)), column.raw_type


def test_variants_are_compared_by_their_values(spark: SparkSession) -> None:
    rows = "SELECT id, parse_json(doc) AS doc FROM VALUES (1, '{}'), (2, 'null'), (3, NULL) AS t(id, doc)"
    database, same, wrong = (
        spark.sql(rows.format(doc)) for doc in ('{"b": 1.50, "a": {}}', '{"a": {}, "b": 1.5}', '{"a": {}, "b": 1}')
    )
    assert differences(database, same, ["id"]).equal
    assert differences(database, wrong, ["id"]).examples == ['different {"id":1}']
    assert differences(database, database.selectExpr("id", "nvl(doc, parse_json('null')) doc"), ["id"]).different == 1


def in_rows(columns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return rows of these columns' values; a column with fewer values has NULLs."""
    return [[column[row] if row < len(column) else None for column in columns] for row in range(max(map(len, columns)))]


def typed(cells: DataFrame, table: Table, types: TypeOptions) -> list[list[Any]]:
    """Return the rows of a mirror. Instants are UTC as text, variants JSON."""
    into = {name: kind for name, kind in mirror_columns(table, types).items() if name != SEQUENCE}
    rows = cells.selectExpr(*typed_cells(table, into, types))
    assert dict(rows.dtypes) == into
    as_text = {"timestamp": "cast({} as string)", "variant": "to_json({})"}
    found = rows.selectExpr(*(as_text.get(kind, "{}").format(name) for name, kind in into.items())).collect()
    return [[bytes(each) if isinstance(each, bytearray) else each for each in row] for row in found]


def streamed_cells(spark: SparkSession, messages: Sequence[bytes]) -> DataFrame:
    """Return what the change log has of the row images in these messages."""
    key = Encoder().key("log.000001", 4)
    headers = [(names.SEQUENCE_HEADER, sequence_text(1, 0))]
    records = [(key, message, offset, headers) for offset, message in enumerate(messages)]
    schema = "key binary, value binary, offset bigint, headers array<struct<key: string, value: binary>>"
    kafka = spark.createDataFrame(records, schema).selectExpr("*", "'t' topic", "0 partition", "now() timestamp")
    return decode_records(kafka, 0, 9).where("_action <> 'invalid'").select("cells")


def golden_messages(kind: Kind) -> list[tuple[Table, dict[str, Any]]]:
    """Return the messages for a real server's binlog, each with its table."""
    lines = path(kind, Case("databus")).read_bytes().splitlines()
    values = [json.loads(line)["value"] for line in lines]
    return [(decode_definition(encoded(value["Table"])), value) for value in values if value.get("Table")]


def encoded(value: object) -> bytes:
    """Encode as the publisher does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
