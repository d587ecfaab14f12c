"""Changes and dumps as DataFrames of users' own jobs, and the copies of tables that they keep."""

import asyncio
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from common.spark import leaves_sockets
from databus_binlog import Position
from databus_core import names
from databus_core.errors import CannotApply, ChangesLost, DumpUnusable, InvalidSettings
from databus_core.events import Action, QueryEvent, Row, Table
from databus_core.manifest import State
from databus_core.settings import Kafka
from databus_messages.formats.databus import Encoder
from databus_spark import TypeOptions, apply_changes, delta, read_changes, read_dump
from databus_spark.alignment import align
from databus_spark.changelog import ChangeLog, LogState
from databus_spark.changes import changes_in
from databus_spark.layout import Layout
from databus_spark.messages import decode_messages, decode_records
from databus_spark.types import DEFAULT_TYPES
from databus_wire.kafka_records import sequence_text
from devstack import Server
from integration.sink_peers import DumpServer, SamplePublisher, describe_table, serving

pytestmark = [
    pytest.mark.lake,
    leaves_sockets,
]

INSERT, UPDATE, DELETE = Action.INSERT, Action.UPDATE, Action.DELETE
ALTER, CREATE, DROP, TRUNCATE = Action.ALTER, Action.CREATE, Action.DROP, Action.TRUNCATE
ITEMS = describe_table("items", "id int(11)", "name varchar(20)")
WIDER = describe_table("items", "id bigint(20)", "note text", "name varchar(50)")

Change = tuple[Table, Action, Sequence[Row] | bytes]


class Topic:
    """Records as a topic has them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._encoder = Encoder()
        self._offset = self._transaction = 0

    def batch(self, *changes: Change, partition: int = 0, transaction: int = 0, partitions: int = 1) -> DataFrame:
        """Return the records of these changes, each in a transaction of its own unless one is given."""
        rows = []
        for table, action, content in changes:
            self._transaction = transaction or self._transaction + 1
            if isinstance(content, bytes):
                query = QueryEvent(table.fingerprint, action, content, 60, 100)
                key, value = self._encoder.query(table, "bin.000001", query)
            else:
                key, value = self._encoder.key("bin.000001", 100), self._encoder.rows_value(table, action, content)
            rows += [self.record(key, value, number) for number in range(partition, partition + partitions)]
        return self.records(rows)

    def record(self, key: bytes, value: bytes | None, partition: int = 0) -> tuple[Any, ...]:
        self._offset += 1
        headers = [(names.SEQUENCE_HEADER, sequence_text(self._transaction, 0))]
        return key, value, "shop.shop.items", partition, self._offset, datetime(2026, 1, 1, tzinfo=UTC), headers

    def records(self, rows: list[tuple[Any, ...]]) -> DataFrame:
        return self._spark.createDataFrame(
            rows,
            "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
            "headers array<struct<key string, value binary>>",
        )


@pytest.fixture
def topic(spark: SparkSession) -> Topic:
    return Topic(spark)


@pytest.fixture
def mirror(tmp_path: Path) -> str:
    return str(tmp_path / "mirror")


def changes(records: DataFrame, table: Table = ITEMS, types: TypeOptions = DEFAULT_TYPES) -> DataFrame:
    message = Encoder().rows_value(table, INSERT, [[None] * len(table.columns)])
    definition = msgspec.json.decode(message, type=dict[str, msgspec.Raw])["Table"]
    return changes_in(records, bytes(definition).decode(), types)


def rows(spark: SparkSession, mirror: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.read.format("delta").load(mirror).drop("_seq").collect()))


def test_rows_of_other_definitions_are_read_by_column_names(topic: Topic) -> None:
    records = topic.batch(
        (ITEMS, INSERT, [[b"1", b"one"], [b"2", None]]),
        (WIDER, ALTER, b"ALTER TABLE items ADD note TEXT AFTER id"),
        (WIDER, UPDATE, [[b"1", None, b"one"], [b"1", b"!", b"uno"]]),
    )
    found = changes(records, WIDER).orderBy("_seq", "_row")
    assert found.columns[:4] == ["id", "note", "name", "_seq"]
    assert [tuple(row) for row in found.select("id", "note", "name", "_action", "_row", "_query").collect()] == [
        (1, None, "one", "insert", 0, None),
        (2, None, None, "insert", 1, None),
        (None, None, None, "alter", None, "ALTER TABLE items ADD note TEXT AFTER id"),
        (1, None, "one", "update_before", 0, None),
        (1, "!", "uno", "update_after", 1, None),
    ]
    # a query that began before the statement has the old columns
    assert [tuple(row) for row in changes(records).where("_row = 1").select("id", "name").collect()] == [
        (2, None),
        (1, "uno"),
    ]


#: type of the column, type in the definition of a record, text of a value there, value
READ = [
    ("int(11)", "bigint(20)", b"5000000000", 5_000_000_000),
    ("bigint(20)", "bit(8)", b"7", 7),
    ("decimal(12,4)", "decimal(8,2)", b"1.50", Decimal("1.5")),
    ("varchar(9)", "longtext", b"text", "text"),
    ("enum('a','b','c')", "enum('a','b')", b"2", "b"),
    ("set('a','b','c')", "set('a','b')", b"3", "a,b"),
    ("datetime(6)", "datetime", b"2026-01-02 03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
    ("point", "point", b"\x01", b"\x01"),
]
REFUSED = [
    ("int(11)", "bigint(20) unsigned"),
    ("bigint(20)", "bit(64)"),
    ("bigint(20)", "varchar(20)"),
    ("decimal(8,2)", "decimal(12,2)"),
    ("decimal(12,4)", "decimal(12,2)"),
    ("decimal(12,2)", "int(11)"),
    ("double", "float"),
    ("date", "datetime"),
    ("timestamp", "datetime"),
    ("enum('a','b')", "enum('a','b','c')"),
    ("enum('a','b')", "enum('b','a')"),
    ("varchar(9)", "enum('a','b')"),
    ("varchar(9)", "blob"),
    ("point", "geometry"),
]


def test_values_of_other_types_are_read_if_the_column_represents_them(topic: Topic) -> None:
    before = describe_table("items", "id int(11)", *(f"V{n} {other}" for n, (_, other, *_) in enumerate(READ)))
    after = describe_table("items", "id int(11)", *(f"v{n} {known}" for n, (known, *_) in enumerate(READ)))
    [row] = changes(topic.batch((before, INSERT, [[b"1", *(cell for *_, cell, _ in READ)]])), after).collect()
    assert list(row[1 : len(READ) + 1]) == [value for *_, value in READ]


def test_instants_do_not_depend_on_the_time_zone_of_the_session(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    stamps = describe_table("items", "id int(11)", "at timestamp(3)")
    found = changes(Topic(session).batch((stamps, INSERT, [[b"1", b"1970-01-02 00:00:00.500"]])), stamps)
    assert [tuple(row) for row in found.selectExpr("unix_millis(at)").collect()] == [(86_400_500,)]


def test_types_that_a_column_does_not_represent_end_the_query(topic: Topic) -> None:
    before = describe_table("items", "id int(11)", *(f"v{n} {other}" for n, (_, other) in enumerate(REFUSED)))
    after = describe_table("items", "id int(11)", *(f"v{n} {known}" for n, (known, _) in enumerate(REFUSED)))
    columns = ", ".join(f"v{n}" for n in range(len(REFUSED)))
    text = f"topic shop.shop.items, partition 0, offset 1: the table has another definition of {columns}: restart"
    with pytest.raises(PySparkException, match=text):
        changes(topic.batch((before, INSERT, [[b"1", *(b"1" for _ in REFUSED)]])), after).collect()


def test_another_primary_key_ends_the_query(topic: Topic) -> None:
    other = describe_table("items", "id int(11)", "name varchar(20)", key=(0, 1))
    with pytest.raises(PySparkException, match="offset 1: the table has another definition of the primary key"):
        changes(topic.batch((other, INSERT, [[b"1", b"one"]]))).collect()


def test_a_record_that_cannot_be_used_ends_the_query_unless_it_is_left_out(topic: Topic) -> None:
    good = topic.batch((ITEMS, INSERT, [[b"1", b"one"]]))
    found = changes(good.union(topic.records([topic.record(b"{}", b"{}")])))
    with pytest.raises(PySparkException, match="offset 2 cannot be used: it is not in the databus format"):
        found.count()
    assert found.where("_offset <> 2").count() == 1


def test_the_last_change_of_a_key_counts_and_a_batch_may_come_again(
    spark: SparkSession, topic: Topic, mirror: str
) -> None:
    first = changes(topic.batch((ITEMS, INSERT, [[b"1", b"one"], [b"2", b"two"], [b"3", b"three"], [b"4", b"four"]])))
    second = changes(
        topic.batch(
            (ITEMS, UPDATE, [[b"1", b"one"], [b"9", b"nine"], [b"2", b"two"], [b"1", b"two"]]),  # 1 → 9, 2 → 1
            (ITEMS, DELETE, [[b"3", b"three"], [b"4", b"four"]]),
            (ITEMS, INSERT, [[b"3", b"again"]]),
            (ITEMS, INSERT, [[b"5", b"gone"]]),
            (ITEMS, DELETE, [[b"5", b"gone"]]),
        ).union(topic.batch((ITEMS, INSERT, [[b"1", b"late"]]), transaction=1))  # a dead letter that was replayed
    )
    for batch in (first, second, second):
        apply_changes(batch, mirror)
        if batch is second:
            assert rows(spark, mirror) == [(1, "two"), (3, "again"), (9, "nine")]
    apply_changes(first.where("id in (1, 3)"), mirror)  # older changes of rows that exist
    assert rows(spark, mirror) == [(1, "two"), (3, "again"), (9, "nine")]


def test_a_row_that_moves_between_partitions_is_kept(spark: SparkSession, topic: Topic, mirror: str) -> None:
    apply_changes(changes(topic.batch((ITEMS, INSERT, [[b"1", b"a"], [b"2", b"a"]]))), mirror)
    inserted = topic.batch((ITEMS, INSERT, [[b"1", b"b"], [b"2", b"b"]]), partition=1, transaction=7)
    deleted = topic.batch((ITEMS, DELETE, [[b"1", b"a"], [b"2", b"a"]]), transaction=7)
    for batch in (inserted.union(deleted), inserted, deleted):  # in one batch, and in two in the other order
        apply_changes(changes(batch), mirror)
        assert rows(spark, mirror) == [(1, "b"), (2, "b")]


def test_truncate_removes_what_is_older_in_each_partition(spark: SparkSession, topic: Topic, mirror: str) -> None:
    apply_changes(changes(topic.batch((ITEMS, INSERT, [[b"1", b"old"]]))), mirror)
    late = topic.batch((ITEMS, INSERT, [[b"2", b"old"]]), partition=1)
    truncate = topic.batch((ITEMS, TRUNCATE, b"TRUNCATE items"), partitions=2).localCheckpoint()
    newer = topic.batch((ITEMS, INSERT, [[b"3", b"new"]]))
    apply_changes(changes(truncate.where("partition = 0").union(newer)), mirror)
    assert rows(spark, mirror) == [(3, "new")]
    apply_changes(changes(late.union(truncate.where("partition = 1"))), mirror)
    assert rows(spark, mirror) == [(3, "new")]


def test_alter_is_refused_until_the_user_leaves_it_out(spark: SparkSession, topic: Topic, mirror: str) -> None:
    apply_changes(changes(topic.batch((ITEMS, INSERT, [[b"1", b"one"]]))), mirror)
    statement = b"ALTER TABLE items ADD note TEXT AFTER id"
    records = topic.batch((WIDER, ALTER, statement), (WIDER, INSERT, [[b"2", b"!", b"two"]]))
    with pytest.raises(CannotApply, match="offset 2: ALTER or RENAME TABLE may change rows") as refused:
        apply_changes(changes(records), mirror)
    assert rows(spark, mirror) == [(1, "one")]
    advice = "changes.where(\"_action <> 'alter' or _seq <> '0000000000000002-0000000000'\")"
    assert advice in str(refused.value)
    apply_changes(changes(records, WIDER).where("_action <> 'alter' or _seq <> '0000000000000002-0000000000'"), mirror)
    assert [
        (row.id, row.note, row["name"]) for row in spark.read.format("delta").load(mirror).orderBy("id").collect()
    ] == [
        (1, None, "one"),
        (2, "!", "two"),
    ]


def test_a_table_that_is_created_again_with_more_columns_needs_a_new_query(
    spark: SparkSession, topic: Topic, mirror: str
) -> None:
    before = topic.batch((ITEMS, INSERT, [[b"1", b"old"]]), (ITEMS, DROP, b"DROP TABLE items"))
    after = topic.batch((WIDER, CREATE, b"CREATE TABLE items (id BIGINT)"), (WIDER, INSERT, [[b"2", b"!", b"two"]]))
    records = before.union(after)
    with pytest.raises(CannotApply, match="offset 3: the table was created with columns that the changes do not have"):
        apply_changes(changes(records), mirror)
    apply_changes(changes(records, WIDER), mirror)
    assert rows(spark, mirror) == [(2, "!", "two")]


def test_what_does_not_fit_a_mirror_is_refused(spark: SparkSession, topic: Topic, mirror: str) -> None:
    good = changes(topic.batch((ITEMS, INSERT, [[b"1", b"one"]])))
    apply_changes(good, mirror)
    for batch, text in [
        (good.drop("name"), "the changes lack the column name of"),
        (good.drop("_offset"), "the changes lack the column _offset of read_changes"),
        (good.withColumn("_seq", good._offset.cast("string")), "do not have the column _seq of read_changes"),
        (good.withColumn("name", good._offset), "column name of .* is string and in the changes bigint"),
        (changes(topic.batch(), describe_table("items", "id int(11)", key=())), "has no primary key"),
    ]:
        with pytest.raises(InvalidSettings, match=text):
            apply_changes(batch, mirror)
    delta.Table(spark, mirror).note('{"transaction": 1}')
    with pytest.raises(InvalidSettings, match="is a table of databus-spark-sink"):
        apply_changes(good, mirror)
    good.select("id", "name").write.format("delta").save(f"{mirror}1")
    with pytest.raises(InvalidSettings, match="lacks the column _seq, which read_dump gives"):
        apply_changes(good, f"{mirror}1")
    born = describe_table("items", "day date")
    with pytest.raises(PySparkException, match="a primary key value, for instance a zero date, has no type"):
        apply_changes(changes(topic.batch((born, INSERT, [[b"0000-00-00"]])), born), f"{mirror}2")


def test_a_change_log_has_the_same_changes_as_the_topic(spark: SparkSession, topic: Topic, tmp_path: Path) -> None:
    records = topic.batch(
        (ITEMS, INSERT, [[b"1", b"one"], [b"2", None]]),
        (WIDER, ALTER, b"ALTER TABLE items ADD note TEXT AFTER id"),
        (describe_table("others", "id int(11)"), INSERT, [[b"1"]]),
        (WIDER, UPDATE, [[b"1", None, b"one"], [b"1", b"!", b"uno"]]),
    )
    lake = Layout(tmp_path.as_uri())
    log = ChangeLog(spark, lake.changes)
    log.start({})
    log.append(decode_records(records, -1, 4), LogState(4))
    found = read_changes(spark, table="shop.items", lake=lake.url)
    assert found.schema == changes(records, WIDER).schema
    later = topic.batch((describe_table("items", "note text", "id bigint(20)"), INSERT, [[b"!", b"3"]]))
    log.append(decode_records(later, 4, 5), LogState(5))  # it is not among the changes of before
    assert sorted(found.collect(), key=str) == sorted(changes(records, WIDER).collect(), key=str)
    with pytest.raises(InvalidSettings, match=r"has no change of table shop\.orders: check the name"):
        read_changes(spark, table="shop.orders", lake=lake.url)
    with pytest.raises(InvalidSettings, match="there is no change log in file:///nowhere"):
        read_changes(spark, table="shop.items", lake="file:///nowhere")


def test_rows_whose_definition_is_missing_end_the_query(topic: Topic) -> None:
    messages = decode_messages(topic.batch((ITEMS, INSERT, [[b"1", b"one"]])), -1, -1)
    lost = messages.withColumn("_definition", sql.lit(None).cast("string"))
    with pytest.raises(PySparkException, match="the definition of the table is missing"):
        align(lost, ITEMS, "{}", DEFAULT_TYPES).collect()


def test_other_types_are_the_same_from_topic_change_log_and_dump(
    spark: SparkSession, topic: Topic, tmp_path: Path
) -> None:
    types = TypeOptions(zero_dates="string", time_columns="microseconds")
    spans = describe_table("spans", "id int(11)", "day date", "span time")
    content = [[b"1", b"0000-00-00", b"-00:00:01"]]
    expected, columns = [(1, "0000-00-00", -1_000_000)], ("id", "day", "span")
    records = topic.batch((spans, INSERT, content))
    assert list(map(tuple, changes(records, spans, types).select(*columns).collect())) == expected

    lake = Layout(tmp_path.as_uri())
    log = ChangeLog(spark, lake.changes)
    log.start({})
    log.append(decode_records(records, -1, 1), LogState(1))
    found = read_changes(spark, table="shop.spans", lake=lake.url, types=types)
    assert list(map(tuple, found.select(*columns).collect())) == expected
    number = describe_table("spans", "id int(11)", "day date", "span bigint(20)")
    with pytest.raises(PySparkException, match="another definition of span"):
        changes(records, number, types).collect()

    dumps = DumpServer(tmp_path, "shop")
    manifest = dumps.manifest(Position(file="bin.000001", offset=4), {spans: content})
    (tmp_path / manifest.id / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    dump = read_dump(spark, f"{tmp_path}/{manifest.id}", table="shop.spans", types=types)
    assert list(map(tuple, dump.rows.select(*columns).collect())) == expected


async def test_the_offsets_of_a_batch_are_those_at_the_call(spark: SparkSession, kafka: Server) -> None:
    connection = Kafka(bootstrap_servers=[kafka.url])
    name = f"changes-{secrets.token_hex(3)}"
    topic = f"{name}.shop.items"

    async def read(table: str = "shop.items", **options: Any) -> DataFrame:
        return await asyncio.to_thread(read_changes, spark, table=table, topic=topic, kafka=connection, **options)

    async with SamplePublisher(name, kafka.url) as publisher:
        with pytest.raises(InvalidSettings, match=f"Kafka has no topic {topic}"):
            await read()
        publisher.partitions = 2
        await publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))
        await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), partition=1)
        early, start = await read(), {topic: dict(publisher.offsets[topic])}
        await publisher.send((ITEMS, INSERT, [[b"3", b"aborted"]]), commit=False)
        await publisher.send((WIDER, ALTER, b"ALTER TABLE items ADD note TEXT AFTER id"))
        later, empty = await read(start=start), await read(end=start, start=start)
        whole = await read(end=publisher.offsets)
        with pytest.raises(InvalidSettings, match=f"topic {topic} has no record of table shop.orders"):
            await read("shop.orders")
        with pytest.raises(ChangesLost, match=f"topic {topic}, partition 1 has the offsets from 0 to"):
            await read(start={topic: {1: 99}})
        assert sorted(row.id for row in early.select("id").collect()) == [1, 2]
        assert early.columns[:2] == empty.columns[:2] == ["id", "name"]
        assert [row._action for row in later.select("_action").collect()] == ["alter", "alter"]
        assert whole.columns[:3] == ["id", "note", "name"]
        assert whole.count() == 4
        assert empty.count() == 0


async def test_a_dump_can_be_read_again_from_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    dumps = DumpServer(tmp_path / "served", "shop")
    position = Position(file="bin.000001", offset=4)
    born = describe_table("empty", "id int(11)", "at timestamp(3)")
    older = dumps.manifest(position, {ITEMS: [[b"1", b"old"]]})
    dumps.manifests = [older]
    newer = dumps.manifest(position, {ITEMS: [[b"1", b"one"], [b"2", None], [b"3", b"three"]], born: []})
    failed = msgspec.structs.replace(newer, id="dump-9", state=State.FAILED)
    dumps.manifests = [failed, newer, older]
    async with serving(dumps) as url:
        with pytest.raises(InvalidSettings, match="read_dump needs a folder"):
            read_dump(spark, url, table="shop.items")
        dump = await asyncio.to_thread(read_dump, spark, url, table="shop.items", folder=str(tmp_path))
        empty = await asyncio.to_thread(read_dump, spark, url, table="shop.empty", folder=str(tmp_path))
        with pytest.raises(DumpUnusable, match=r"no complete dump of shop\.orders"):
            await asyncio.to_thread(read_dump, spark, url, table="shop.orders", folder=str(tmp_path))
    again = read_dump(spark, f"{tmp_path}/dump-2", table="shop.items")
    assert dump.manifest == again.manifest == newer
    assert sorted(map(tuple, again.rows.collect())) == [(1, "one", ""), (2, None, ""), (3, "three", "")]
    assert empty.rows.dtypes == [("id", "bigint"), ("at", "timestamp"), ("_seq", "string")]
    assert empty.rows.count() == 0
    (tmp_path / "dump-2" / "shop.items.00001.jsonl.zst").unlink()
    with pytest.raises(DumpUnusable, match=r"shop\.items\.00001\.jsonl\.zst is not complete in .*: download it again"):
        read_dump(spark, f"{tmp_path}/dump-2", table="shop.items")
    with pytest.raises(DumpUnusable, match=r"has no manifest\.json"):
        read_dump(spark, str(tmp_path), table="shop.items")
