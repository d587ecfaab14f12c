"""Earlier rows of a table, which are made into a table again, or refused."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from common.spark import leaves_sockets
from databus_core.definitions import encode_definition
from databus_core.errors import UsageError
from databus_core.events import Action
from databus_core.settings import Maintain
from databus_spark.changelog import ChangeLog
from databus_spark.errors import CannotRebuild, TableParked
from databus_spark.formats import open_table
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.types import TypeOptions
from databus_spark_sink.upkeep.work import Upkeep
from integration.lake_history import COUNTED, ITEMS, NAME, TODAY, History
from integration.sink_peers import on_both_formats, read_with_spark

pytestmark = [
    pytest.mark.lake,
    leaves_sockets,
]


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


def test_a_record_that_cannot_be_used_does_not_tell_what_was_in_kafka_at_a_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = History(spark, Layout((tmp_path / "lake").as_uri()))
    history.add(-9, ITEMS, Action.CREATE, b"CREATE TABLE items")
    history.add_after_foreign(-8, 0, ITEMS, Action.INSERT, [[b"1"]])  # in one batch, as after a pause
    assert history.rebuilt(f"{TODAY - timedelta(days=7)}"[:19]) == []
    history.close()
