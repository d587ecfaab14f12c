"""Earlier rows of a lake: which are kept, which can be made into a table again, and what upkeep does not change.

There is no Kafka: records are made into DataFrames.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from common.spark import leaves_sockets
from databus import names
from databus.errors import LakeUnavailable, UsageError
from databus.events import Action, QueryEvent, Row, Table
from databus.progress import Reset
from databus.settings import Maintain
from databus.settings.rules import Rule
from databus_messages.formats.databus import Encoder
from databus_spark.changelog import ChangeLog, LogState
from databus_spark.definitions import encode_definition
from databus_spark.errors import CannotRebuild, MirrorChanged, TableParked
from databus_spark.formats import open_table
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.table_changes import TableChanges
from databus_spark.types import TypeOptions
from databus_spark_sink.lake import Lake
from databus_spark_sink.mirrors import Mirrors
from databus_spark_sink.rebuild import rebuild
from databus_spark_sink.tables import TableStates
from databus_spark_sink.upkeep.work import Upkeep
from databus_wire.kafka_records import sequence_text
from integration.sink_peers import Cells, describe_table, on_both_formats, read_with_spark

pytestmark = [
    pytest.mark.lake,
    leaves_sockets,
]

ITEMS = describe_table("items", "id int(11)")
COUNTED = describe_table("items", "id int(11)", "n int(11)")
NAME = ("shop", "items")
TODAY = datetime.now(UTC).replace(hour=12)
RECORD = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>, topic string, partition int, "
    "offset bigint, timestamp timestamp"
)


class History:
    """A lake that gets one transaction after the other."""

    def __init__(self, spark: SparkSession, layout: Layout) -> None:
        self.spark, self.layout = spark, layout
        self.patterns = ["shop.*"]
        self._encoder = Encoder()
        self.restart()
        self.lake.begin({})

    def restart(self) -> None:
        """Open the lake with the patterns of now."""
        self.lake = Lake(self.spark, self.layout, self.patterns, lambda *_: True, TypeOptions(), ())

    def add(self, day: int, table: Table, action: Action, content: Sequence[Row] | bytes) -> None:
        """Write a transaction of a day, relative to today, as a batch."""
        self._apply(self._record(day, table, action, content))

    def add_after_foreign(
        self, foreign_day: int, day: int, table: Table, action: Action, content: Sequence[Row] | bytes
    ) -> None:
        """Write a batch of a record that is none of ours, and of a transaction of a later day."""
        foreign, record = (self._record(each, table, action, content) for each in (foreign_day, day))
        self._apply((foreign[0], b"?", [], *foreign[3:]), record)

    def rename(self, query: bytes, *tables: Table) -> None:
        """Write a statement that renames tables, under their old and new names, as a batch."""
        self._apply(*(self._record(0, table, Action.ALTER, query) for table in tables))

    def _apply(self, *records: tuple[object, ...]) -> None:
        number = self.lake.state.transaction + 1
        self.lake.apply(self.spark.createDataFrame(records, RECORD), LogState(number, {"items": {0: number + 1}}))

    def _record(self, day: int, table: Table, action: Action, content: Sequence[Row] | bytes) -> tuple[object, ...]:
        number = self.lake.state.transaction + 1
        if isinstance(content, bytes):
            query = QueryEvent(table.fingerprint, action, content, number * 10, number * 10 + 9)
            key, value = self._encoder.query(table, "bin.000001", query)
        else:
            key, value = self._encoder.key("bin.000001", number * 10), self._encoder.rows_value(table, action, content)
        header = (names.SEQUENCE_HEADER, sequence_text(number, 0))
        return key, value, [header], "items", 0, number, TODAY + timedelta(days=day)

    def rebuilt(self, at: str) -> list[Cells]:
        """Rebuild the rows of the table in a folder of their own."""
        folder = f"rebuilt/{at[:10]}"
        rebuild(self.spark.newSession(), self.layout, NAME, folder, at, ())
        return self._rows(f"{self.layout.root}/{folder}")

    def rows(self, table: str = "items") -> list[Cells]:
        """Read a mirror."""
        return self._rows(self.layout.mirror("shop", table))

    def _rows(self, path: str) -> list[Cells]:
        rows = read_with_spark(self.spark, path, "SELECT * FROM t ORDER BY id")
        return [{name: value for name, value in row.items() if name != "_seq"} for row in rows]

    def close(self) -> None:
        self.lake.close()


@on_both_formats
@pytest.mark.usefixtures("table_format")
def test_a_table_is_rebuilt_as_of_any_transaction_that_the_lake_still_has(spark: SparkSession, tmp_path: Path) -> None:
    layout = Layout((tmp_path / "lake").as_uri())
    history = History(spark, layout)
    history.add(-9, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add(-9, ITEMS, Action.INSERT, [[b"1"], [b"2"]])
    history.add(-8, COUNTED, Action.ALTER, b"ALTER TABLE items ADD n int DEFAULT 7")
    history.add(-8, COUNTED, Action.UPDATE, [[b"2", b"7"], [b"3", b"8"]])
    history.add(0, COUNTED, Action.DELETE, [[b"1", b"7"]])
    mirror, upkeep = layout.mirror(*NAME), Upkeep(spark, layout, Maintain(log_retention=5 * 86400))

    assert history.rebuilt("1") == [{"id": 1}, {"id": 2}]
    assert history.rebuilt(f"{TODAY - timedelta(days=7)}"[:19]) == [{"id": 1, "n": 7}, {"id": 3, "n": 8}]
    with pytest.raises(UsageError, match="exists already"):
        history.rebuilt("1")
    with pytest.raises(UsageError, match="the change log ends with transaction 4"):
        history.rebuilt("5")

    before = open_table(spark, mirror).last()
    upkeep.compact("shop.items", mirror)
    upkeep.keep_history(mirror)
    upkeep.compact("changes", layout.changes)
    open_table(spark.newSession(), mirror).vacuum(0)  # all versions but the last ones
    after = open_table(spark, mirror).last()
    assert (after[0] != before[0], after[1]) == (True, before[1]), "a version of upkeep has the state of that before it"
    assert ChangeLog(spark, layout.changes).state() == history.lake.state
    history.add(0, COUNTED, Action.INSERT, [[b"5", None]])
    assert [row["id"] for row in read_with_spark(spark, mirror, "SELECT id FROM t ORDER BY id")] == [3, 5]
    assert history.rebuilt("0000000000000003-0000000000") == [{"id": 1, "n": 7}, {"id": 3, "n": 8}], "from its CREATE"

    upkeep.trim()
    assert sorted(row["_seq"][:16] for row in read_with_spark(spark, layout.changes, "SELECT * FROM t")) == [
        "0000000000000004",
        "0000000000000005",
    ]
    # Delta's history still has the version, but not its files; Iceberg's has neither
    with pytest.raises(CannotRebuild, match=r"items at transaction 3 any more: .* \(spark\.maintain(\.keep)?\)"):
        history.rebuilt("3")
    late = Mirror(spark, ChangeLog(spark, layout.changes), NAME, f"{layout.root}/late", TypeOptions(), ())
    with pytest.raises(TableParked, match="does not have all that is newer than its dump"):
        late.load(spark.sql("SELECT array(binary('1'))"), ITEMS, MirrorState(2, encode_definition(ITEMS)))
    history.close()


def test_the_rows_before_a_truncate_are_rebuilt(spark: SparkSession, tmp_path: Path) -> None:
    history = History(spark, Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add(0, ITEMS, Action.INSERT, [[b"1"], [b"2"]])
    history.add(0, ITEMS, Action.TRUNCATE, b"TRUNCATE items")

    assert history.rebuilt("1") == [{"id": 1}, {"id": 2}]
    assert history.rebuilt("2") == []
    history.close()


def test_a_table_is_not_rebuilt_from_a_change_log_that_lacks_changes(spark: SparkSession, tmp_path: Path) -> None:
    layout = Layout((tmp_path / "lake").as_uri())
    history = History(spark, layout)
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    assert history.lake.park_tables_of("items", "records were lost", 3)
    history.add(0, ITEMS, Action.INSERT, [[b"2"]])
    history.add(0, ITEMS, Action.DELETE, [[b"3"]])
    history.add(0, ITEMS, Action.TRUNCATE, b"TRUNCATE items")  # after it, the rows are known again
    history.add(0, ITEMS, Action.INSERT, [[b"5"]])
    assert (history.rows(), history.lake.degraded) == ([{"id": 5}], "")

    assert history.rebuilt("1") == [{"id": 1}]
    for at in ("2", "3"):
        with pytest.raises(CannotRebuild, match="may lack changes of it in transactions 2 to 3"):
            history.rebuilt(at)
    assert history.rebuilt("5") == [{"id": 5}]
    history.close()


def test_a_table_that_is_left_out_has_no_rows_of_later_transactions(spark: SparkSession, tmp_path: Path) -> None:
    layout = Layout((tmp_path / "lake").as_uri())
    history = History(spark, layout)
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    history.patterns = ["crm.*"]
    history.restart()
    history.add(0, ITEMS, Action.INSERT, [[b"2"]])  # a topic of several tables
    assert history.rebuilt("1") == [{"id": 1}]
    with pytest.raises(CannotRebuild, match=r"left out of spark\.tables"):
        history.rebuilt("2")
    history.patterns = ["shop.*"]
    history.restart()
    with pytest.raises(CannotRebuild, match="it is parked"):
        history.rebuilt("2")
    rows = spark.sql("SELECT array(binary(id)) cells FROM VALUES ('1'), ('2') v(id)")
    assert history.lake.load(rows, ITEMS, MirrorState(2, encode_definition(ITEMS)))
    history.lake.catch_up()
    assert history.rebuilt("0000000000000002-0000000000") == [{"id": 1}, {"id": 2}]
    history.close()


def test_a_table_whose_values_are_not_exact_is_parked(spark: SparkSession, tmp_path: Path) -> None:
    rule = Rule(match=["shop.*"], topic="t", format="databus", options={"compat": "strict"})
    log = ChangeLog(spark, f"{tmp_path}/changes")
    mirror = Mirror(spark, log, NAME, f"{tmp_path}/mirror", TypeOptions(), [rule])
    with pytest.raises(TableParked, match="compat: strict"):
        mirror.advance(TableChanges(), 0)


def test_a_record_that_cannot_be_used_does_not_tell_what_was_in_kafka_at_a_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = History(spark, Layout((tmp_path / "lake").as_uri()))
    history.add(-9, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add_after_foreign(-8, 0, ITEMS, Action.INSERT, [[b"1"]])  # in one batch, as after a pause
    assert history.rebuilt(f"{TODAY - timedelta(days=7)}"[:19]) == []
    history.close()


def test_upkeep_alone_does_not_make_delta_forget_the_state_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    layout = Layout((tmp_path / "lake").as_uri())
    history = History(spark, layout)
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    path = layout.mirror(*NAME)
    table = open_table(spark, path)
    state = table.text()
    for number in range(10):  # Delta makes a checkpoint of each tenth version, and deletes old commits before old ones
        table.keep_history(7 * 86400 + number)
    for file in tmp_path.rglob("_delta_log/0*"):  # nine days go by
        time = datetime.now(UTC) - timedelta(days=9, minutes=-int(file.name[:20]))
        os.utime(file, (time.timestamp(), time.timestamp()))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    for number in range(10):
        upkeep = Upkeep(spark, layout, Maintain(keep=8 * 86400 + number))
        upkeep.keep_history(path)
        upkeep.compact("shop.items", path)
    assert table.text() == state
    history.add(0, ITEMS, Action.INSERT, [[b"2"]])
    upkeep.keep_history(path)
    assert table.properties()["delta.logRetentionDuration"] == "interval 691209 seconds"
    history.close()


def test_rows_that_another_program_has_changed_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    layout = Layout((tmp_path / "lake").as_uri())
    history = History(spark, layout)
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    spark.sql("SELECT 9L id, '' _seq").write.format("delta").mode("append").save(layout.mirror(*NAME))
    rows, state = history.lake.mirror(NAME).rows()
    assert (sorted(row.id for row in rows.collect()), state.transaction) == ([1, 9], 1)
    history.close()


def test_a_mirror_that_is_behind_is_written_with_the_next_batch_though_that_has_no_records(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(spark, Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    advance, failures = Mirror.advance, [PySparkException("the disk is full")] * 2

    def fail_twice(mirror: Mirror, changes: TableChanges, last: int) -> None:
        if failures:
            raise failures.pop()
        advance(mirror, changes, last)

    monkeypatch.setattr(Mirror, "advance", fail_twice)
    history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    history.add(0, ITEMS, Action.INSERT, [[b"2"]])
    assert history.lake.is_behind
    assert history.lake.state.mirrored == 0, "a sink that starts now need not read all of the log"

    history.lake.apply(None, LogState(3, {}))

    assert not history.lake.is_behind
    assert history.rebuilt("2") == [{"id": 1}, {"id": 2}]
    history.close()


def test_a_mirror_that_is_behind_when_records_are_lost_stays_parked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(spark, Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")

    def fail(*_: object) -> None:
        raise PySparkException("a disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "advance", fail)
        history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    assert history.lake.is_behind

    history.lake.park_tables_of("items", "Kafka has deleted records", 2)
    history.add(0, ITEMS, Action.INSERT, [[b"3"]])

    assert history.lake.degraded == "parked: shop.items"
    history.close()


def test_lost_records_park_a_table_whose_mirror_cannot_be_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(spark, Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")

    def fail(*_: object) -> None:
        raise PySparkException("a file is damaged")

    with monkeypatch.context() as patch:
        patch.setattr(Mirrors, "open", fail)
        history.lake.park_tables_of("items", "Kafka has deleted records", 2)

    assert history.lake.degraded == "parked: shop.items"
    history.close()


@on_both_formats
@pytest.mark.usefixtures("table_format")
def test_a_sink_that_was_suspended_does_not_write_over_the_one_that_replaced_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = History(spark, layout := Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    log = ChangeLog(spark, layout.changes)
    suspended = Mirror(spark.newSession(), log, NAME, layout.mirror(*NAME), TypeOptions(), ())
    history.add(0, ITEMS, Action.INSERT, [[b"1"], [b"2"]])
    late = suspended.changes(1)
    history.add(0, ITEMS, Action.DELETE, [[b"1"]])
    with pytest.raises(MirrorChanged, match="another sink"):
        suspended.advance(late, 1)
    assert history.rows() == [{"id": 2}]

    # It may have checked that just before: what it has written is noticed, and made good.
    before = Mirror(spark.newSession(), log, NAME, layout.mirror(*NAME), TypeOptions(), ())
    assert before.state
    before.begin(spark.sql("SELECT * FROM VALUES (1, ''), (2, '') v(id, _seq)"), replace(before.state, transaction=1))
    history.add(0, ITEMS, Action.INSERT, [[b"3"]])
    assert history.lake.is_behind
    history.lake.catch_up()
    assert history.rows() == [{"id": 2}, {"id": 3}]
    history.close()


def test_a_sink_that_was_suspended_for_days_does_not_append_its_batch_once_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = History(spark, layout := Layout(tmp_path.as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    open_table(spark, layout.changes).set_properties({"delta.setTransactionRetentionDuration": "interval 0 seconds"})
    suspended = ChangeLog(spark.newSession(), layout.changes)
    assert suspended.state().transaction == 0
    history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    batch = suspended.read(0)
    history.add(0, ITEMS, Action.INSERT, [[b"2"]])
    assert not suspended.append(batch, LogState(1))
    log = ChangeLog(spark, layout.changes)
    assert (log.state().transaction, log.read().count()) == (2, 3)
    history.close()


def test_a_dump_of_before_a_reset_is_not_loaded_after_it(spark: SparkSession, tmp_path: Path) -> None:
    history = History(spark, Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.lake.park_after_reset(Reset(2))
    rows = spark.sql("SELECT array(binary('1')) cells")
    assert not history.lake.load(rows, ITEMS, MirrorState(1, encode_definition(ITEMS)))
    assert history.lake.load(rows, ITEMS, MirrorState(2, encode_definition(ITEMS)))
    history.lake.catch_up()
    assert (history.rows(), history.lake.degraded) == ([{"id": 1}], "")
    history.close()


def test_a_sink_that_was_suspended_does_not_release_tables(spark: SparkSession, tmp_path: Path) -> None:
    layout = Layout(tmp_path.as_uri())
    suspended = TableStates(spark, layout.tables)
    suspended.park(NAME, "a doubt", 1)
    TableStates(spark.newSession(), layout.tables).park(NAME, "another doubt", 2)
    with pytest.raises(LakeUnavailable, match="another sink"):
        suspended.release(NAME)


def test_a_mirror_that_cannot_be_read_when_it_is_renamed_does_not_stop_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = History(spark, layout := Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add(0, ITEMS, Action.INSERT, [[b"1"]])
    for file in Path(layout.mirror(*NAME).removeprefix("file:")).rglob("*.parquet"):
        file.unlink()
    new = describe_table("renamed", "id int(11)")
    history.rename(b"RENAME TABLE items TO renamed", ITEMS, new)
    assert history.lake.degraded == "parked: shop.renamed"
    assert "could not be read" in history.lake.tables.parked["shop", "renamed"].reason

    dumped = MirrorState(history.lake.state.transaction, encode_definition(new))
    assert history.lake.load(spark.sql("SELECT array(binary('1')) cells"), new, dumped)
    history.lake.catch_up()
    assert history.rows("renamed") == [{"id": 1}]
    history.close()


def test_a_damaged_mirror_is_loaded_again(spark: SparkSession, tmp_path: Path) -> None:
    history = History(spark, layout := Layout((tmp_path / "lake").as_uri()))
    history.add(0, ITEMS, Action.CREATE, b"CREATE TABLE items")
    for file in Path(layout.mirror(*NAME).removeprefix("file:"), "_delta_log").glob("*.json"):
        file.write_text("not a commit")
    lake = Lake(spark.newSession(), layout, ["shop.*"], lambda *_: True, TypeOptions(), ())
    assert lake.load(spark.sql("SELECT array(binary('1')) cells"), ITEMS, MirrorState(0, encode_definition(ITEMS)))
    lake.catch_up()
    assert history.rows() == [{"id": 1}]
    lake.close()
    history.close()
