"""A lake over time: other sinks, resets, lost records, damaged mirrors, upkeep, and what they do not change."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from common.spark import leaves_sockets
from databus_core.definitions import encode_definition
from databus_core.errors import LakeUnavailable
from databus_core.events import Action
from databus_core.progress import Reset
from databus_core.settings import Maintain
from databus_core.settings.rules import Rule
from databus_spark.changelog import ChangeLog, LogState
from databus_spark.errors import MirrorChanged, TableParked
from databus_spark.formats import open_table
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.table_changes import TableChanges
from databus_spark.types import TypeOptions
from databus_spark_sink.lake import Lake
from databus_spark_sink.mirrors import Mirrors
from databus_spark_sink.tables import TableStates
from databus_spark_sink.upkeep.work import Upkeep
from integration.lake_history import ITEMS, NAME, History
from integration.sink_peers import describe_table, on_both_formats

pytestmark = [
    pytest.mark.lake,
    leaves_sockets,
]


def test_a_table_whose_values_are_not_exact_is_parked(spark: SparkSession, tmp_path: Path) -> None:
    rule = Rule(match=["shop.*"], topic="t", format="databus", options={"compat": "strict"})
    log = ChangeLog(spark, f"{tmp_path}/changes")
    mirror = Mirror(spark, log, NAME, f"{tmp_path}/mirror", TypeOptions(), [rule])
    with pytest.raises(TableParked, match="compat: strict"):
        mirror.advance(TableChanges(), 0)


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
