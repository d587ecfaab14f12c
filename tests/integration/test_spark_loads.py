"""The sink loads dumps, and continues them with the stream."""

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from common.spark import leaves_sockets
from databus_binlog import Position
from databus_core.change_topics import ChangeTopics
from databus_core.definitions import encode_definition
from databus_core.dump_client import DumpApi
from databus_core.errors import DatabusError, DumpUnusable, InvalidSettings, LakeUnavailable
from databus_core.events import Row, Table
from databus_core.manifest import FileFormat
from databus_core.pipeline_passed import wait_until_passed
from databus_spark.changelog import ChangeLog
from databus_spark.dump_files import read_rows
from databus_spark.errors import MirrorChanged
from databus_spark.folder import Folder
from databus_spark.formats import open_table
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import DumpBase, MirrorState
from databus_spark.types import TypeOptions
from databus_spark_sink.lake import Lake
from databus_spark_sink.loads import loading
from databus_spark_sink.loads.dumps import take
from integration.sink import DELETE, INSERT, ITEMS, UPDATE, Sink
from integration.sink_peers import describe_table, read_with_spark

pytestmark = leaves_sockets


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


@pytest.mark.lake
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
    with pytest.raises(DumpUnusable, match="after dump dump-1 began, the pipeline failed over"):
        await wait_until_passed(
            sink.settings, dumps.manifests[0], ChangeTopics(sink.settings, sink.settings.spark.tables)
        )


async def test_only_files_of_a_dump_that_are_not_complete_in_the_lake_are_downloaded(
    sink: Sink, tmp_path: Path
) -> None:
    tables = [describe_table(name, "id int(11)") for name in ("whole", "half", "absent")]
    await sink.publisher.send((tables[0], INSERT, [[b"1"]]))
    sink.dump({table: [[b"1"]] for table in tables})
    sink.dumps.on_request = [sink.dumps.manifests[0]] * 2
    sink.dumps.requested = ["shop.*"]
    manifest, folder = sink.dumps.manifests[0], Folder(sink.spark, sink.lake.downloads).inside("dump-1")
    contents = {file.name: (tmp_path / "dump-1" / file.name).read_bytes() for file in manifest.files}
    for name, size in (("shop.whole.00001.jsonl.zst", None), ("shop.half.00001.jsonl.zst", 9)):
        (tmp_path / name).write_bytes(contents[name][:size])
        folder.put(tmp_path / name)

    async with DumpApi(sink.settings.dumps.url) as api:
        dump = await take(sink.settings, print, api, ["shop.*"], Folder(sink.spark, sink.lake.downloads), set())

    assert len(sink.dumps.ranges) == 2
    assert {name: folder.size(name) for name in contents} == {name: len(content) for name, content in contents.items()}
    assert read_rows(sink.spark, manifest, tables[1], dump.folder, TypeOptions()).count() == 1
    folder.delete()
    folder.delete()  # it is gone
    assert folder.size("shop.whole.00001.jsonl.zst") is None

    (tmp_path / "dump-1" / "shop.absent.00001.jsonl.zst").unlink()
    async with DumpApi(sink.settings.dumps.url) as api:
        with pytest.raises(DatabusError):
            await take(sink.settings, print, api, ["shop.*"], Folder(sink.spark, sink.lake.downloads), set())
    assert sink.dumps.downloaded[-3:] == [f"shop.{name}.00001.jsonl.zst" for name in ("whole", "half", "absent")]
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
@pytest.mark.lake
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


@pytest.mark.lake
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
    commits = [len(open_table(sink.spark, sink.lake.mirror("shop", name)).commits()) for name in ("items", "other")]
    assert commits == [3, 1]
    assert sink.mirror(dated) == [], "the rows that were loaded before the zero date are no mirror"
    assert Folder(sink.spark, sink.lake.downloads).size("dump-1") is None


@pytest.mark.lake
def test_of_two_sinks_that_load_a_table_one_stops(spark: SparkSession, tmp_path: Path) -> None:
    lake = Layout(tmp_path.as_uri())

    def rows() -> list[int]:
        return [row["id"] for row in read_with_spark(spark, lake.mirror("shop", "items"), "FROM t ORDER BY id")]

    def open_mirror() -> Mirror:
        return Mirror(
            spark, ChangeLog(spark, lake.changes), ("shop", "items"), lake.mirror("shop", "items"), TypeOptions(), ()
        )

    def load(mirror: Mirror, number: int, until: int = 0) -> None:
        base = DumpBase("dump-1", "log.1", 4, until, passed={})
        cells = spark.sql(f"SELECT array(binary('{number}'), null) as cells")
        mirror.load(cells, ITEMS, MirrorState(-1, encode_definition(ITEMS), base, files=number))

    one = open_mirror()
    load(one, 1)
    two = open_mirror()
    load(one, 2)
    with pytest.raises(MirrorChanged, match="another sink"):
        load(two, 2)
    assert rows() == [1, 2]
    three = open_mirror()
    load(three, 1, until=9)  # of another dump
    with pytest.raises(MirrorChanged, match="another sink"):
        load(one, 3)
    load(three, 2, until=9)
    assert rows() == [1, 2]
