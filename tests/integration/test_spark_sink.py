"""The sink on a real Spark and a real Kafka; the lake is read with delta-rs, which does not use Spark."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from deltalake import DeltaTable
from prometheus_client import REGISTRY
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from common.waiting import cancelled, eventually
from databus import names
from databus.dump_client import DumpApi
from databus.errors import DumpUnusable, InvalidSettings, LakeUnavailable, UsageError
from databus.events import Action, Row, Table
from databus.kafka_progress import read_progress
from databus.log_events import LogEvent
from databus.manifest import FileFormat, State
from databus.progress import Progress
from databus.runtime import Health
from databus.settings import Maintain, Settings
from databus.settings import Spark as SparkSection
from databus_binlog import ABSENT, Position
from databus_spark.changelog import ChangeLog, TableChanges
from databus_spark.definitions import encode_definition
from databus_spark.dump_files import read_rows
from databus_spark.folder import Folder
from databus_spark.formats import open_table
from databus_spark.layout import Layout
from databus_spark.messages import decode_records
from databus_spark.mirror import DumpBase, Mirror, MirrorState
from databus_spark.types import TypeOptions
from databus_spark_sink import cuts, loading, service
from databus_spark_sink.dumps import fetch
from databus_spark_sink.lake import Lake
from databus_spark_sink.offsets import wait_until_passed
from databus_spark_sink.resync import resync
from databus_spark_sink.verify import verify
from databus_wire.kafka_records import sequence_text
from devstack import Server
from integration.sink_peers import (
    Cells,
    DumpServer,
    SamplePublisher,
    describe_table,
    on_both_formats,
    read,
    read_with_spark,
    serving,
)

#: when a thread ends, py4j leaves its connection open; the garbage collector closes it, which pytest reports
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")

INSERT, UPDATE, DELETE, ALTER = Action.INSERT, Action.UPDATE, Action.DELETE, Action.ALTER
ITEMS = describe_table("items", "id int(11)", "name varchar(20)")


class StatusHealth(Health):
    """Keeps what the service reports while it is not ready."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    def down(self, reason: str) -> None:
        super().down(reason)
        self.reasons.append(reason)


class Sink:
    """A sink with its own lake, and with stand-ins for publisher and dump-api."""

    def __init__(self, spark: SparkSession, settings: Settings, publisher: SamplePublisher, dumps: DumpServer) -> None:
        self.settings, self.publisher, self.dumps = settings, publisher, dumps
        self.lake = Layout(settings.spark.lake)
        self.spark = spark
        self.health = StatusHealth()

    async def run(self) -> None:
        """Bring the lake up to date with what is in Kafka now."""
        await service.keep_up_to_date(self.settings, self.health, self.spark, self.lake, until_idle=True)

    def use(self, **changed: Any) -> None:
        """Change settings of the section `spark`."""
        section = self.settings.spark.model_dump() | changed
        self.settings = self.settings.model_copy(update={"spark": SparkSection(**section)})

    def dump(self, rows: dict[Table, list[Row]], **more: Any) -> None:
        """Add a dump of these rows, as of now."""
        offsets = dict(self.publisher.offsets)
        manifest = self.dumps.manifest(self.publisher.position, rows, kafka_offsets=offsets, **more)
        self.dumps.manifests.insert(0, manifest)

    def read(self, path: str, query: str = "SELECT * FROM t") -> list[Cells]:
        """Query a table of the lake, as `t`."""
        is_delta = self.settings.spark.table_format == "delta"
        return read(path, query) if is_delta else read_with_spark(self.spark, path, query)

    def mirror(self, table: Table) -> list[Cells]:
        """Read a mirror, ordered by its first column."""
        rows = self.read(self.lake.mirror("shop", table.name), "SELECT * FROM t ORDER BY 1, 2")
        return [{name: value for name, value in row.items() if name != "_seq"} for row in rows]

    def changes(self, table: Table, columns: str = "*") -> list[Any]:
        """Read columns of a change log, in order."""
        query = f"SELECT {columns} FROM t WHERE _table = '{table.name}' ORDER BY _seq, _row"
        return [tuple(row.values()) for row in self.read(self.lake.changes, query)]


@pytest.fixture
async def sink(
    spark: SparkSession, kafka: Server, jars: Path, tmp_path: Path, table_format: str
) -> AsyncIterator[Sink]:
    name = f"sink-{secrets.token_hex(3)}"
    dumps = DumpServer(tmp_path, name)
    async with serving(dumps) as url, SamplePublisher(name, kafka.url) as publisher:
        section = {"lake": (tmp_path / "lake").as_uri(), "tables": ["shop.*"], "jars": jars, "heal": "manual"}
        section["table_format"] = table_format
        yield Sink(
            spark,
            Settings(name=name, kafka={"bootstrap_servers": [kafka.url]}, dumps={"url": url}, spark=section),
            publisher,
            dumps,
        )


async def test_the_stream_continues_the_dump_without_gap_or_duplicate(sink: Sink) -> None:
    publisher = sink.publisher
    await publisher.send((ITEMS, INSERT, [[b"1", b"one"], [b"2", b"two"]]))
    offsets = dict(publisher.offsets)  # older than the position: the dump and Kafka both contain the next changes
    await publisher.send((ITEMS, UPDATE, [[b"1", b"one"], [b"1", b"uno"]]), (ITEMS, DELETE, [[b"2", b"two"]]))
    manifest = sink.dumps.manifest(publisher.position, {ITEMS: [[b"1", b"uno"], [b"3", None]]}, kafka_offsets=offsets)
    sink.dumps.manifests.append(manifest)
    await publisher.send((ITEMS, INSERT, [[b"66", b"aborted"]]), commit=False)
    await publisher.send((ITEMS, INSERT, [[b"2", b"again"]]))
    publisher.position = Position(file="mysql-bin.000010", offset=4)
    await publisher.send((ITEMS, UPDATE, [[b"3", None], [b"3", b"tres"]]))

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 1, "name": "uno"}, {"id": 2, "name": "again"}, {"id": 3, "name": "tres"}]
    assert sink.changes(ITEMS, "_seq, _action, _file, _position, cells")[3:] == [
        ("0000000000000005-0000000000", "insert", "mysql-bin.000009", 350, [b"2", b"again"]),
        ("0000000000000006-0000000000", "update_before", "mysql-bin.000010", 54, [b"3", None]),
        ("0000000000000006-0000000000", "update_after", "mysql-bin.000010", 54, [b"3", b"tres"]),
    ]
    assert sink.dumps.leases == ["taken dump-1", "released dump-1"]
    assert sink.health.reasons == [
        "opening the lake",
        "looking for a dump to load",
        "waiting until the pipeline has passed the position of dump dump-1",
        "loading shop.items from dump dump-1: file 1 of 1",
        "loading dump dump-1: 1 of 1 tables are loaded",
        "starting to read Kafka",
    ]


async def test_changes_after_a_failover_are_kept_despite_lower_file_numbers(sink: Sink) -> None:
    publisher, dumps = sink.publisher, sink.dumps
    publisher.gtids, publisher.server = "0-1-5", "first"
    await publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))
    first_position = Position("0-1-5", publisher.position.file, publisher.position.offset)
    dumps.manifests.append(dumps.manifest(first_position, {ITEMS: [[b"1", b"one"]]}, source="mariadb 10.11 first"))
    await sink.run()
    publisher.position = Position(file="other-bin.000002", offset=4)
    publisher.server = "second"
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    await sink.run()
    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]

    # A new lake cannot use a dump of the first server: later changes have positions in the second's files.
    with pytest.raises(DumpUnusable, match="the pipeline failed over to another server after dump dump-1"):
        await wait_until_passed(sink.settings, dumps.manifests[0])


async def test_only_files_of_a_dump_that_are_not_complete_in_the_lake_are_downloaded(
    sink: Sink, tmp_path: Path
) -> None:
    tables = [describe_table(name, "id int(11)") for name in ("whole", "half", "absent")]
    await sink.publisher.send((tables[0], INSERT, [[b"1"]]))
    sink.dump({table: [[b"1"]] for table in tables})
    manifest, folder = sink.dumps.manifests[0], Folder(sink.spark, sink.lake.downloads).inside("dump-1")
    contents = {file.name: (tmp_path / "dump-1" / file.name).read_bytes() for file in manifest.files}
    for name, size in (("shop.whole.00001.jsonl.zst", None), ("shop.half.00001.jsonl.zst", 9)):
        (tmp_path / name).write_bytes(contents[name][:size])
        folder.put(tmp_path / name)

    async with DumpApi(sink.settings.dumps.url) as api:
        dump = await fetch(sink.settings, print, api, manifest, Folder(sink.spark, sink.lake.downloads))

    assert len(sink.dumps.ranges) == 2
    assert {name: folder.size(name) for name in contents} == {name: len(content) for name, content in contents.items()}
    assert read_rows(sink.spark, manifest, tables[1], dump.folder, TypeOptions()).count() == 1
    folder.delete()
    folder.delete()  # it is gone
    assert folder.size("shop.whole.00001.jsonl.zst") is None


def test_a_lake_whose_file_system_has_no_jars_is_refused_in_one_line(spark: SparkSession) -> None:
    with pytest.raises(InvalidSettings, match=r"^spark\.lake: Spark has no file system for nofs://"):
        Folder(spark, "nofs://bucket/lake").size("changes")
    with pytest.raises(LakeUnavailable, match=r"^hdfs://127\.0\.0\.1:1/lake: ConnectException \(check spark\.lake"):
        Folder(spark, "hdfs://127.0.0.1:1/lake").size("changes")


TYPES: dict[str, tuple[bytes, Any]] = {
    "odd`;=,name bigint(20) unsigned": (b"18446744073709551615", Decimal(2**64 - 1)),
    "small tinyint(4)": (b"-128", -128),
    "medium mediumint(8) unsigned": (b"16777215", 16777215),
    "born year(4)": (b"0", 0),
    "price decimal(20,6)": (b"-12345678901234.567890", Decimal("-12345678901234.567890")),
    "huge decimal(65,30)": (b"9" * 35 + b"." + b"9" * 30, "9" * 35 + "." + "9" * 30),
    "ratio float": (b"0.5", 0.5),
    "exact double": (b"0.1", 0.1),
    "flags bit(64)": (b"18446744073709551615", Decimal(2**64 - 1)),
    "flag bit(1)": (b"1", 1),
    "day date": (b"1000-01-01", date(1000, 1, 1)),
    "zero date": (b"0000-00-00", None),
    "partial datetime": (b"2021-00-00 00:00:00", None),
    "at datetime(6)": (b"2024-02-29 23:59:59.999999", datetime(2024, 2, 29, 23, 59, 59, 999999)),
    "stamp timestamp(3)": (b"2038-01-19 03:14:07.125", datetime(2038, 1, 19, 3, 14, 7, 125000, tzinfo=UTC)),
    "span time(6)": (b"-838:59:59.000000", "-838:59:59.000000"),
    "word varchar(20)": ("Grüße 👋 'q' \\".encode(), "Grüße 👋 'q' \\"),
    "empty text": (b"", ""),
    "doc json": (b'{"a": [1, null]}', '{"a": [1, null]}'),
    "size enum('small','it\\s','x large')": (b"2", "it\\s"),
    "invalid enum('a','b')": (b"0", ""),
    "tags set('a','b','c')": (b"5", "a,c"),
    "picture blob": (b"\x00\xff\x10'", b"\x00\xff\x10'"),
    "fixed binary(4)": (b"a\x00\x00\x00", b"a\x00\x00\x00"),
    "place point": (b"\x00\x00\x00\x00\x01\x01", b"\x00\x00\x00\x00\x01\x01"),
}


@pytest.mark.parametrize(
    ("table_format", "file_format"),
    [("delta", FileFormat.PARQUET), ("iceberg", FileFormat.JSONL)],
    indirect=["table_format"],
)
async def test_a_value_of_every_type_is_the_same_from_dump_and_stream(sink: Sink, file_format: FileFormat) -> None:
    everything = describe_table("types", "id int(11)", *TYPES)
    texts = [text for text, _ in TYPES.values()]
    sink.dump({everything: [[b"1", *texts], [b"2", *[None] * len(texts)]]}, formats=[file_format])
    await sink.publisher.send((everything, INSERT, [[b"3", *texts], [b"4", *[None] * len(texts)]]))

    await sink.run()

    loaded, loaded_null, streamed, streamed_null = ([*row.values()][1:] for row in sink.mirror(everything))
    assert loaded == streamed == [value for _, value in TYPES.values()]
    assert set(loaded_null) == set(streamed_null) == {None}
    [(cells,), _] = sink.changes(everything, "cells")
    assert cells == [b"3", *texts]


async def test_a_load_that_is_killed_continues_where_it_was(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_STEP_BYTES", 1)
    other = describe_table("other", "id int(11)", "name varchar(20)")
    keyless = describe_table("keyless", "id int(11)", "name varchar(20)", key=())
    dated = describe_table("dated", "day date")
    rows: list[Row] = [[b"%d" % number, b"x"] for number in range(1, 6)]
    days: list[Row] = [[b"2026-11-01"], [b"2026-11-02"], [b"0000-00-00"]]
    content = {keyless: rows, other: rows[:1], ITEMS: rows, dated: days}
    sink.dump(content, formats=[FileFormat.JSONL, FileFormat.PARQUET], part_size=1)
    load, steps = Lake.load, count(1)

    class Killed(Exception):
        pass

    def killed(lake: Lake, rows: DataFrame, table: Table, state: MirrorState) -> bool:
        step = next(steps) if table.name == "items" else 0
        if step == 2:
            raise Killed  # before the second step is committed
        loaded = load(lake, rows, table, state)
        if step == 3:
            raise Killed  # after it
        return loaded

    monkeypatch.setattr(Lake, "load", killed)
    for _ in range(2):
        with pytest.raises(Killed):
            await sink.run()
    monkeypatch.setattr(Lake, "load", load)
    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": number, "name": "x"} for number in range(1, 6)]
    assert sink.mirror(other) == [{"id": 1, "name": "x"}]
    names = ["items.00001", "items.00002", "items.00003", "other.00001"]
    assert [name for name in sorted(sink.dumps.downloaded) if "dated" not in name] == [
        f"shop.{name}.parquet" for name in names
    ]
    assert DeltaTable(sink.lake.mirror("shop", "items")).version() == 2
    assert DeltaTable(sink.lake.mirror("shop", "other")).version() == 0
    assert sink.mirror(dated) == [], "the rows that were loaded before the zero date are no mirror"
    assert Folder(sink.spark, sink.lake.downloads).size("dump-1") is None


def test_two_sinks_that_load_a_table_add_no_row_twice_and_lose_none(spark: SparkSession, tmp_path: Path) -> None:
    def open_mirror() -> Mirror:
        return Mirror(
            spark, ChangeLog(spark, f"{tmp_path}/changes"), ("shop", "items"), f"{tmp_path}/items", TypeOptions()
        )

    def load(mirror: Mirror, number: int, until: int = 0) -> None:
        base = DumpBase("dump-1", "log.1", 4, until)
        rows = spark.sql(f"SELECT array(binary('{number}'), null) as cells")
        mirror.load(rows, ITEMS, MirrorState(-1, encode_definition(ITEMS), base, files=number))

    one = open_mirror()
    load(one, 1)
    two = open_mirror()
    for mirror in one, two:
        load(mirror, 2)
    assert [row["id"] for row in read(f"{tmp_path}/items", "SELECT id FROM t ORDER BY id")] == [1, 2]
    three = open_mirror()
    three.state = None
    load(three, 1, until=9)  # it has just started, and does not know the others
    with pytest.raises(LakeUnavailable, match="another sink"):
        load(one, 3)
    load(three, 2, until=9)
    assert [row["id"] for row in read(f"{tmp_path}/items", "SELECT id FROM t ORDER BY id")] == [1, 2]


async def test_updates_deletes_and_key_changes_are_applied_in_order(sink: Sink) -> None:
    lines = describe_table("lines", "order_id int(11)", "n varchar(9)", "text varchar(9)", key=(0, 1))
    sink.dump({lines: [[b"1", b"a", b"x"], [b"1", b"b", b"y"], [b"2", b"a", b"z"]]})
    await sink.publisher.send(
        (lines, UPDATE, [[b"1", b"b", b"y"], [b"1", b"c", b"y"], [b"1", b"a", b"x"], [b"1", b"b", b"x"]]),
        (lines, DELETE, [[b"2", b"a", b"z"]]),
        (lines, INSERT, [[b"2", b"a", b"new"], [b"9", b"z", b"gone"]]),
        (lines, DELETE, [[b"9", b"z", b"gone"]]),
    )

    await sink.run()

    assert [tuple(row.values()) for row in sink.mirror(lines)] == [(1, "b", "x"), (1, "c", "y"), (2, "a", "new")]
    actions = [action for (action,) in sink.changes(lines, "_action")]
    updates = ["update_before", "update_after"] * 2
    assert actions == [*updates, "delete", "insert", "insert", "delete"]


async def test_a_row_that_takes_a_key_and_leaves_it_again_within_one_event_leaves_nothing(sink: Sink) -> None:
    sink.dump({ITEMS: [[b"1", b"one"], [b"8", b"eight"]]})
    await sink.publisher.send(
        # INSERT … VALUES (1), (2) ON DUPLICATE KEY UPDATE id = id + 1
        (ITEMS, UPDATE, [[b"1", b"one"], [b"2", b"one"], [b"2", b"one"], [b"3", b"one"]]),
        # UPDATE … SET id = id + 1 ORDER BY id DESC
        (ITEMS, INSERT, [[b"7", b"seven"]]),
        (ITEMS, UPDATE, [[b"8", b"eight"], [b"9", b"eight"], [b"7", b"seven"], [b"8", b"seven"]]),
    )

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 3, "name": "one"}, {"id": 8, "name": "seven"}, {"id": 9, "name": "eight"}]


@on_both_formats
async def test_columns_added_and_widened_within_a_batch_are_applied(sink: Sink) -> None:
    wider = describe_table("items", "id bigint(20)", "name varchar(20)", "price decimal(8,2)", "seen datetime(6)")
    widest = describe_table("items", "id bigint(20)", "name varchar(20)", "price decimal(12,2)", "seen datetime(6)")
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await sink.publisher.send(
        (ITEMS, INSERT, [[b"2", b"two"]]),
        (wider, ALTER, b"ALTER TABLE items MODIFY id bigint, ADD price decimal(8,2), ADD seen datetime(6)"),
        (wider, INSERT, [[b"3", b"three", b"3.50", b"2024-01-02 03:04:05.000006"]]),
        (widest, ALTER, b"ALTER TABLE items MODIFY price decimal(12,2)"),
        (widest, INSERT, [[b"4", None, b"1234567890.12", None]]),
    )

    await sink.run()

    mirrored = open_table(sink.spark, sink.lake.mirror("shop", "items")).read().orderBy("id").drop("_seq")
    assert [tuple(row) for row in mirrored.collect()] == [
        (1, "one", None, None),
        (2, "two", None, None),
        (3, "three", Decimal("3.50"), datetime(2024, 1, 2, 3, 4, 5, 6)),
        (4, None, Decimal("1234567890.12"), None),
    ]


async def test_a_column_that_is_renamed_replaced_or_added_with_a_default_has_the_values_of_the_database(
    sink: Sink,
) -> None:
    after = describe_table("items", "id int(11)", "title varchar(20)", "stock int(11)", "note varchar(9)")
    swapped = describe_table("items", "id int(11)", "note varchar(20)", "stock int(11)", "title varchar(9)")
    emptied = describe_table("items", "id int(11)", "note varchar(20)", "stock int(11)")
    sink.dump({ITEMS: [[b"1", b"one"], [b"2", None]]})
    await sink.publisher.send(
        (after, ALTER, b"ALTER TABLE items CHANGE name title varchar(20), ADD stock int DEFAULT 7, "
                       b"ADD note varchar(9) NOT NULL"),
        (after, UPDATE, [[b"2", None, b"7", b""], [b"2", b"two", b"8", b"!"]]),
        (swapped, ALTER, b"ALTER TABLE items RENAME COLUMN title TO note, RENAME COLUMN note TO title"),
        (emptied, ALTER, b"ALTER TABLE items DROP COLUMN title, DROP COLUMN stock, ADD stock int"),
    )  # fmt: skip

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 1, "note": "one", "stock": None}, {"id": 2, "note": "two", "stock": None}]


@on_both_formats
async def test_renamed_tables_take_their_rows_along(sink: Sink) -> None:
    a, b, gone = (describe_table(name, "id int(11)", "name varchar(20)") for name in ("a", "b", "gone"))
    renamed = describe_table("renamed", "id int(11)", "name varchar(20)")
    sink.dump({a: [[b"1", b"a"]], b: [[b"2", b"b"]], gone: [[b"3", b"c"]]})
    swap, rename = b"RENAME TABLE a TO t, b TO a, t TO b", b"RENAME TABLE gone TO renamed"
    await sink.publisher.send((a, INSERT, [[b"4", b"a"]]))
    await sink.publisher.statement(swap, (a, ALTER), (b, ALTER))
    await sink.publisher.send((a, INSERT, [[b"5", b"b"]]))
    await sink.publisher.statement(rename, (gone, ALTER), (renamed, ALTER))
    await sink.publisher.send((renamed, INSERT, [[b"6", b"c"]]))

    await sink.run()

    assert [row["id"] for row in sink.mirror(a)] == [2, 5]
    assert [row["id"] for row in sink.mirror(b)] == [1, 4]
    assert [row["id"] for row in sink.mirror(renamed)] == [3, 6]
    assert sink.mirror(gone) == []


async def test_partitions_are_read_in_the_order_of_the_source(sink: Sink) -> None:
    publisher = sink.publisher
    publisher.partitions = 2
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await publisher.send((ITEMS, INSERT, [[b"100", b"x"]]), partition=1)
    await publisher.send((ITEMS, INSERT, [[b"101", b"x"]]), partition=0)
    await publisher.send((ITEMS, Action.TRUNCATE, b"TRUNCATE shop.items"))
    await publisher.send((ITEMS, INSERT, [[b"102", b"x"], [b"200", b"x"]]), partition=1)
    # Rows move to another partition, as if `routes.key` were `name`. A record has the sequence of its first row, so
    # the insert of row 200 has a lower one than its delete.
    await publisher.transaction(
        (ITEMS, DELETE, [[b"102", b"x"]], 1, 0),
        (ITEMS, INSERT, [[b"102", b"y"], [b"200", b"y"]], 0, 0),
        (ITEMS, DELETE, [[b"200", b"x"]], 1, 1),
    )

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 102, "name": "y"}, {"id": 200, "name": "y"}]


async def test_a_transaction_whose_records_kafka_shows_before_its_progress_is_not_lost(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [], other: []})
    await sink.publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))
    early = await read_progress(sink.settings)
    await sink.publisher.send((other, INSERT, [[b"1"]]))
    shown = [early, early]  # the marker of the second commit is not yet in the progress topic

    async def read_shown(settings: Settings, *, to_end: bool = False) -> Progress | None:
        hidden = shown.pop() if shown else None
        return hidden if hidden and not to_end else await read_progress(settings, to_end=to_end)

    monkeypatch.setattr(cuts, "read_progress", read_shown)

    await sink.run()

    assert [row["id"] for row in sink.mirror(ITEMS)] == [1]
    assert [row["id"] for row in sink.mirror(other)] == [1]


async def test_a_sink_that_was_killed_after_the_change_log_was_written_catches_up(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], other: []})
    await sink.run()
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (other, INSERT, [[b"1"]]))
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "_follow", lambda *_: (_ for _ in ()).throw(InterruptedError))
        with pytest.raises(InterruptedError):
            await sink.run()
    assert len(sink.mirror(ITEMS)) == 1
    await sink.publisher.send((ITEMS, UPDATE, [[b"2", b"two"], [b"3", b"three"]]))

    await sink.run()

    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 3]
    assert [row["id"] for row in sink.mirror(other)] == [1]
    assert [action for (action,) in sink.changes(ITEMS, "_action")] == ["insert", "update_before", "update_after"]


async def test_a_mirror_that_could_not_be_written_follows_all_statements_with_the_next_batch(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = describe_table("items", "id int(11)", "name varchar(20)", "n int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]]})
    advance, failures = Mirror.advance, [PySparkException("the disk is full")]

    def advance_later(mirror: Mirror, changes: TableChanges, last: int) -> None:
        if failures and changes.statements:
            raise failures.pop()
        advance(mirror, changes, last)

    monkeypatch.setattr(Mirror, "advance", advance_later)
    monkeypatch.setattr(cuts, "MAX_RECORDS", 1)  # a batch for each
    await sink.publisher.send((ITEMS, Action.TRUNCATE, b"TRUNCATE items"))
    await sink.publisher.send((counted, ALTER, b"ALTER TABLE items ADD n int DEFAULT 5"))
    await sink.publisher.send((counted, INSERT, [[b"2", b"two", b"5"]]))

    await sink.run()

    assert not failures
    assert sink.mirror(ITEMS) == [{"id": 2, "name": "two", "n": 5}]


async def test_a_mirror_that_cannot_be_read_is_behind_and_the_others_go_on(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], other: [[b"1"]]})
    await sink.run()
    open_mirror, damaged = Mirror.__init__, {("shop", "items")}

    def open_undamaged(mirror: Mirror, spark: SparkSession, log: ChangeLog, name: tuple[str, str], *more: Any) -> None:
        if name in damaged:
            raise PySparkException("a file of the mirror is damaged")
        open_mirror(mirror, spark, log, name, *more)

    monkeypatch.setattr(Mirror, "__init__", open_undamaged)
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (other, INSERT, [[b"2"]]))
    with pytest.raises(LakeUnavailable, match=r"not up to date \(behind: shop\.items\)"):
        await sink.run()
    assert sink.mirror(other) == [{"id": 1}, {"id": 2}]

    damaged.clear()
    await sink.run()
    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]


async def test_truncated_and_recreated_tables_are_emptied(sink: Sink) -> None:
    born = describe_table("born", "id int(11)", "name varchar(20)")
    sink.dump({ITEMS: [[b"1", b"one"], [b"2", b"two"]]})
    await sink.publisher.send(
        (ITEMS, INSERT, [[b"3", b"three"]]),
        (ITEMS, Action.TRUNCATE, b"TRUNCATE shop.items"),
        (ITEMS, INSERT, [[b"4", b"four"]]),
        (born, Action.CREATE, b"CREATE TABLE shop.born"),
        (born, INSERT, [[b"1", b"old"]]),
        (born, Action.CREATE, b"CREATE TABLE IF NOT EXISTS shop.born"),
    )
    await sink.run()
    assert [row["id"] for row in sink.mirror(ITEMS)] == [4]
    assert sink.mirror(born) == [{"id": 1, "name": "old"}]

    other = describe_table("born", "id int(11)", "name varchar(20)", "more int(11)")
    await sink.publisher.send((other, INSERT, [[b"2", b"odd", b"3"]]))
    await sink.run()
    assert sink.health.degraded == "parked: shop.born"
    await sink.publisher.send((born, Action.DROP, b"DROP TABLE shop.born"))
    await sink.run()
    assert sink.mirror(born) == []
    assert sink.health.degraded == "", "a table that is gone is in no doubt"

    await sink.publisher.send(
        (born, Action.CREATE, b"CREATE TABLE shop.born (name text) COMMENT 'if not exists'"),
        (born, INSERT, [[b"2", b"new"]]),
    )
    await sink.publisher.send((ITEMS, Action.CREATE, b"CREATE OR REPLACE TABLE shop.items"))
    await sink.run()
    assert sink.mirror(born) == [{"id": 2, "name": "new"}]
    assert sink.mirror(ITEMS) == []
    assert [a for (a,) in sink.changes(born, "_action")] == [
        "create",
        "insert",
        "create",
        "insert",
        "drop",
        "create",
        "insert",
    ]


async def test_a_table_that_cannot_be_mirrored_is_parked_and_the_others_go_on(sink: Sink) -> None:
    tables = {name: describe_table(name, "id int(11)", "at time") for name in ("retyped", "lost", "odd")}
    retyped = describe_table("retyped", "id int(11)", "at time(3)")
    keyless = describe_table("lost", "id int(11)", "at time", key=())
    unknown = describe_table("odd", "id int(11)", "at time", "more int(11)")
    unseen = describe_table("unseen", "id int(11)")  # neither in the dump nor created since
    sink.dump({ITEMS: [], **{table: [[b"1", b"10:00:00"]] for table in tables.values()}})
    await sink.publisher.send(
        (retyped, ALTER, b"ALTER TABLE retyped MODIFY at time(3)"),
        (retyped, INSERT, [[b"2", b"10:00:00.000"]]),
        (keyless, ALTER, b"ALTER TABLE lost DROP PRIMARY KEY"),
        (keyless, INSERT, [[b"1", b"10:00:00"]]),
        (unknown, INSERT, [[b"2", b"10:00:00", b"3"]]),
        (unseen, INSERT, [[b"7"]]),
        (ITEMS, INSERT, [[b"1", b"one"]]),
    )

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}]
    parked = sink.read(sink.lake.tables, "SELECT * FROM t WHERE state = 'parked' ORDER BY \"table\"")
    assert [(row["table"], row["reason"]) for row in parked] == [
        ("lost", "it has no primary key"),
        ("odd", "rows have columns that no statement explains"),
        ("retyped", "the effect of a statement on its rows cannot be told: column at changes from time to time(3)"),
        ("unseen", "its earlier rows are not in the lake"),
    ]
    assert sink.health.degraded == "parked: shop.lost, shop.odd, shop.retyped, shop.unseen"
    assert [row["id"] for row in sink.mirror(tables["retyped"])] == [1], "it stays as it was before the doubt"

    # a backfill with --clean heals it
    await sink.publisher.send((retyped, Action.TRUNCATE, b"TRUNCATE"), (retyped, INSERT, [[b"1", b"10:00:00.000"]]))
    await sink.run()
    assert sink.mirror(retyped) == [{"id": 1, "at": "10:00:00.000"}]
    assert sink.health.degraded == "parked: shop.lost, shop.odd, shop.unseen"


async def test_a_parked_table_is_loaded_again_from_a_new_dump_while_the_others_go_on(sink: Sink) -> None:
    publisher = sink.publisher
    retyped = describe_table("items", "id int(11)", "name int(11)")
    sink.dump({ITEMS: [[b"1", b"1"]]})
    await publisher.send((retyped, ALTER, b"ALTER TABLE items MODIFY name int"), (retyped, INSERT, [[b"2", b"2"]]))
    await sink.run()
    assert sink.health.degraded == "parked: shop.items"
    sink.use(heal="auto")
    healing = sink.dumps.manifest(publisher.position, {retyped: [[b"1", b"1"], [b"2", b"2"]]})
    sink.dumps.on_request = [healing]
    sink.dumps.requested = ["shop.items"]
    sink.dumps.meanwhile = lambda: publisher.send((retyped, UPDATE, [[b"2", b"2"], [b"2", b"3"]]))

    await sink.run()

    assert sink.mirror(retyped) == [{"id": 1, "name": 1}, {"id": 2, "name": 3}]
    assert sink.health.degraded == ""
    assert [(row["table"], row["state"]) for row in sink.read(sink.lake.tables)] == [("items", "live")]


async def test_all_mirrors_are_loaded_again_with_other_types(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    publisher = sink.publisher
    visits = describe_table("visits", "id int(11)", "day date", "span time(3)", "doc json")
    days = describe_table("days", "day date")
    visit, changed = [b"1", b"0000-00-00", b"-00:00:01.500", b"null"], [b"1", b"2021-00-00", None, b'{"a": 1.50}']
    sink.dump({visits: [visit], days: [[b"0000-00-00"]]})
    await sink.run()
    assert sink.mirror(visits) == [{"id": 1, "day": None, "span": "-00:00:01.500", "doc": "null"}]
    assert "values of shop.visits, column day, are NULL in the lake" in caplog.text
    assert sink.health.degraded == "parked: shop.days"

    types = {"zero_dates": "string", "time_columns": "microseconds", "json_columns": "variant"}
    sink.use(heal="auto", types=types)
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {visits: [visit]})]
    with pytest.raises(LakeUnavailable, match=r"shop.visits was made with other settings of spark.types"):
        await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])

    async def meanwhile() -> None:
        if sink.dumps.requested == ["shop.days"]:
            sink.dumps.requested = ["shop.visits"]
        else:
            await publisher.send((visits, UPDATE, [visit, changed]))

    sink.dumps.requested, sink.dumps.meanwhile = ["shop.days"], meanwhile
    sink.dumps.on_request = [
        sink.dumps.manifest(publisher.position, content) for content in ({days: [[b"0000-00-00"]]}, {visits: [visit]})
    ]
    await sink.run()

    assert sink.health.degraded == ""
    assert sink.mirror(days) == [{"day": "0000-00-00"}]
    rows = sink.spark.read.format("delta").load(sink.lake.mirror("shop", "visits"))
    [row] = rows.selectExpr("id", "day", "span", "to_json(doc)").collect()
    assert tuple(row) == (1, "2021-00-00", None, '{"a":1.5}')


async def test_an_operator_has_a_table_loaded_again_beside_the_stream(
    sink: Sink, capsys: pytest.CaptureFixture[str]
) -> None:
    publisher, dumps = sink.publisher, sink.dumps

    async def resynced(tables: str) -> bool:
        command = asyncio.create_task(
            asyncio.to_thread(resync, sink.spark.newSession(), sink.lake, [tables], wait=True)
        )
        while not command.done():
            await sink.run()
        return await command

    sink.dump({ITEMS: [[b"1", b"wrong"]]})
    await sink.run()
    with pytest.raises(UsageError, match=r"no mirror of shop\.itms"):
        resync(sink.spark, sink.lake, ["shop.itms"], wait=False)

    dumps.requested = ["shop.items"]
    dumps.on_request = [dumps.manifest(publisher.position, {ITEMS: [[b"1", b"one"]]})]
    dumps.meanwhile = lambda: publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    assert await resynced("shop.*")
    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    assert sink.health.degraded == ""
    output = capsys.readouterr()
    assert output.out == "shop.items: loaded\n"
    assert output.err.startswith("shop.items: waiting for the sink\n")

    failed = dumps.manifest(publisher.position, {}, state=State.FAILED, error="no table matches")
    dumps.on_request, dumps.meanwhile = [failed], None
    assert not await resynced("shop.items")
    assert capsys.readouterr().out == "shop.items: failed: dump dump-3 is failed: no table matches\n"
    assert len(sink.mirror(ITEMS)) == 2


@on_both_formats
async def test_verify_finds_what_differs_from_the_database(sink: Sink, capsys: pytest.CaptureFixture[str]) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"], [b"2", b"two"], [b"3", b"three"]]})
    await publisher.send((ITEMS, INSERT, [[b"4", b"four"]]))
    await sink.run()
    same = sink.dumps.manifest(
        publisher.position, {ITEMS: [[b"1", b"one"], [b"2", b"two"], [b"3", b"three"], [b"4", b"four"]]}
    )

    async def go_on() -> None:
        await publisher.send((ITEMS, DELETE, [[b"4", b"four"]]))  # newer than the dump
        await sink.run()

    sink.dumps.on_request, sink.dumps.meanwhile = [same], go_on
    assert await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out == "shop.items: equal, 3 rows\n"

    wrong = sink.dumps.manifest(publisher.position, {ITEMS: [[b"1", b"one"], [b"2", b"2"], [b"9", b"nine"]]})
    sink.dumps.on_request, sink.dumps.meanwhile = [wrong], None
    assert not await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out == (
        "shop.items: DIFFERS: 3 rows, 1 missing, 1 invented, 1 different; "
        'for instance different {"id":2}; invented {"id":3}; missing {"id":9}\n'
    )


@pytest.mark.lake
async def test_the_sink_compares_and_compacts_its_mirrors_by_itself(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    async def differing() -> object:
        return REGISTRY.get_sample_value("databus_sink_verify_differing_rows", {"table": "shop.items"})

    async def is_compacted() -> bool:
        return "OPTIMIZE" in [each["operation"] for each in DeltaTable(sink.lake.mirror("shop", "items")).history()]

    sink.dump({ITEMS: [[b"1", b"one"]]})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))  # in a file of its own
    wrong = sink.dumps.manifest(sink.publisher.position, {ITEMS: [[b"1", b"1"], [b"9", b"nine"]]})
    sink.dumps.on_request, sink.dumps.requested = [wrong] * 100, ["shop.items"]
    sink.use(verify=1, maintain=Maintain(interval=1))
    running = asyncio.create_task(
        service.keep_up_to_date(sink.settings, sink.health, sink.spark, sink.lake, until_idle=False)
    )
    assert await eventually(differing, seconds=200) == 3
    await eventually(is_compacted, seconds=200)
    await cancelled(running)
    found = [record.fields for record in caplog.records if getattr(record, "event", "") == LogEvent.MIRROR_DIFFERS]
    assert found[0] == {"table": "shop.items"}
    assert sink.health.degraded == "", "nothing is parked for it"


async def test_a_parked_table_that_is_renamed_is_parked_under_its_new_name(sink: Sink) -> None:
    a, b, c = (describe_table(name, "id int(11)", "at time") for name in ("a", "b", "c"))
    retyped_a, retyped_b = (describe_table(name, "id int(11)", "at time(3)") for name in ("a", "b"))
    sink.dump({a: [[b"1", b"10:00:00"]], b: [[b"2", b"10:00:00"]], c: []})
    await sink.publisher.send(
        (retyped_a, ALTER, b"ALTER TABLE a MODIFY at time(3)"), (c, INSERT, [[b"3", b"10:00:00"]])
    )
    await sink.publisher.statement(b"RENAME TABLE a TO t, b TO a, t TO b", (a, ALTER), (retyped_b, ALTER))
    await sink.publisher.send((a, INSERT, [[b"4", b"10:00:00"]]), (retyped_b, INSERT, [[b"5", b"10:00:00.000"]]))

    await sink.run()

    assert sink.health.degraded == "parked: shop.b"
    assert [row["id"] for row in sink.mirror(a)] == [2, 4]
    assert [row["id"] for row in sink.mirror(c)] == [3]


@on_both_formats
async def test_records_that_cannot_be_used_are_put_into_quarantine(sink: Sink) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    await publisher.send_raw(ITEMS, b"", None, sequence=None)
    await publisher.send((ITEMS, INSERT, [[b"3", b"three"]]))
    await sink.run()
    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 2, 3], "nobody doubts a table for a foreign record"

    await publisher.send((ITEMS, UPDATE, [[b"1", ABSENT], [b"2", ABSENT]]))  # type: ignore[list-item]
    await publisher.send_raw(ITEMS, KEY.encode(), b"late", sequence=sequence_text(1, 0))
    await sink.run()

    found = sink.read(sink.lake.quarantine, 'SELECT * FROM t ORDER BY "offset"')
    assert [(row["partition"], row["value"] and row["value"][:9], row["reason"]) for row in found] == [
        (0, None, "it was not written by the publisher: the header databus.sequence is missing"),
        (0, b'{"Table":', "it is not in the databus format"),
        (0, b"late", "it came after newer changes, as a replayed dead letter does"),
    ]
    assert sink.health.degraded == "parked: shop.items"


async def test_tables_whose_records_kafka_has_lost_are_parked(sink: Sink, admin: AIOKafkaAdminClient) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], other: []})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (other, INSERT, [[b"1"]]))
    await sink.run()
    await sink.publisher.send((ITEMS, INSERT, [[b"3", b"three"]]), (other, INSERT, [[b"2"]]))
    [topic] = [name for name in sink.publisher.offsets if name.endswith("items")]
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=4)})
    await sink.publisher.send((other, INSERT, [[b"3"]]))

    await sink.run()

    assert [row["id"] for row in sink.mirror(other)] == [1, 2, 3]
    [parked] = sink.read(sink.lake.tables, "SELECT * FROM t WHERE state = 'parked'")
    assert (parked["table"], parked["reason"]) == (
        "items",
        f"Kafka has deleted records of topic {topic} that were not read",
    )


WRONG = {
    "no JSON": "?",
    "no base64": '{"Table":T,"Action":"insert","Rows":[["?","b"]]}',
    "a row without its last cell": '{"Table":T,"Action":"insert","Rows":[["MQ=="]]}',
    "an update without its after image": '{"Table":T,"Action":"update","Rows":[["MQ==",null]]}',
    "no rows": '{"Table":T,"Action":"insert","Query":"MQ=="}',
    "no table": '{"Action":"insert","Rows":[["MQ==",null]]}',
    "an unknown action": '{"Table":T,"Action":"upsert","Rows":[["MQ==",null]]}',
}
COLUMNS = '{"Schema":"shop","Name":"t","Columns":[{"Name":"a","RawType":"int"},{"Name":"b","RawType":"blob"}]}'
KEY = '{"Pos":{"Name":"mysql-bin.000009","Pos":999},"Action":"DML"}'


def test_a_message_that_is_not_in_the_format_is_kept_and_marked_invalid(spark: SparkSession) -> None:
    right = '{"Table":T,"Action":"insert","Rows":[["MQ==",null]]}'
    records = [(KEY, value) for value in (right, *WRONG.values())] + [("{}", right)]
    entries = decode_records(_records(spark, records), 0, 9)

    found = entries.select("_offset", "_action").collect()

    assert sorted(map(tuple, found)) == [(0, "insert"), *((offset, "invalid") for offset in range(1, len(records)))]


# T19: binlog file names get longer after .999999, and offsets need more than 32 bits
def test_t19_records_are_compared_with_the_dump_by_file_number_and_64_bit_offset(spark: SparkSession) -> None:
    positions = {
        ("log.999999", 5 << 32): False,
        ("log.1000000", 4): False,
        ("log.1000000", (5 << 32) - 1): False,
        ("log.1000000", (5 << 32) + 1): True,
        ("other.1000000", 4): False,
        ("other.1000001", 4): True,
    }
    value = '{"Table":T,"Action":"insert","Rows":[["MQ==",null]]}'
    records = [(f'{{"Pos":{{"Name":"{file}","Pos":{offset}}},"Action":"DML"}}', value) for file, offset in positions]
    base = DumpBase("dump-1", "log.1000000", 5 << 32, until=0)
    newer = decode_records(_records(spark, records), 0, 9).where(base.is_before)
    assert {(file, offset) for file, offset in newer.select("_file", "_position").collect()} == {
        position for position, kept in positions.items() if kept
    }


def _records(spark: SparkSession, messages: list[tuple[str, str]]) -> DataFrame:
    rows = ", ".join(
        f"('{key}', '{value.replace(':T', f':{COLUMNS}')}', {offset}L)" for offset, (key, value) in enumerate(messages)
    )
    header = f"array(struct('{names.SEQUENCE_HEADER}' as key, binary('{sequence_text(1, 0).decode()}') as value))"
    return spark.sql(
        f"SELECT binary(key) key, binary(value) value, offset, 't' topic, 0 partition, now() timestamp, "
        f"{header} headers FROM VALUES {rows} AS v(key, value, offset)"
    )
