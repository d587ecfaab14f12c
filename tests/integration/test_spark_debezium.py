"""A topic that a Debezium connector wrote, read as the changes of a table."""

import asyncio
import re
import secrets
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from common.connections import Execute, printing
from common.pipelines import MakePipeline, run_until_idle
from common.spark import leaves_sockets
from databus_core.errors import InvalidSettings
from databus_core.settings import Kafka
from databus_spark import apply_changes, read_debezium_changes
from databus_wire.kafka_records import sequence_text
from devstack import Server
from integration.debezium_records import ITEMS, Record, bits, changes, debezium, decimal, encoded, key, semantic, value
from integration.dump_api import create_topic

pytestmark = [pytest.mark.lake, leaves_sockets]

GUIDE = (Path(__file__).parents[2] / "docs/guide/spark.md").read_text()


def copied(spark: SparkSession, mirror: Path) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.read.format("delta").load(str(mirror)).drop("_seq").collect()))


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
