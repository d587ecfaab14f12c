"""A lake that gets one transaction after the other. There is no Kafka: records are made into DataFrames."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from databus_core import names
from databus_core.events import Action, QueryEvent, Row, Table
from databus_messages.formats.databus import Encoder
from databus_spark.changelog import LogState
from databus_spark.layout import Layout
from databus_spark.types import TypeOptions
from databus_spark_sink.lake import Lake
from databus_spark_sink.rebuild import rebuild
from databus_wire.kafka_records import sequence_text
from integration.sink_peers import Cells, describe_table, read_with_spark

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
