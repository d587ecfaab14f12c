"""The sink in this process, with a lake of its own, and what its tests publish."""

import asyncio
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from pyspark.sql import SparkSession

from databus_core.events import Action, Row, Table
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.settings import Spark as SparkSection
from databus_spark.changelog import ChangeLog
from databus_spark.layout import Layout
from databus_spark_sink import service
from integration.sink_peers import Cells, DumpServer, SamplePublisher, describe_table, read, read_with_spark

INSERT, UPDATE, DELETE = Action.INSERT, Action.UPDATE, Action.DELETE
CREATE, ALTER = Action.CREATE, Action.ALTER
ITEMS = describe_table("items", "id int(11)", "name varchar(20)")
#: key of a message
KEY = '{"Pos":{"Name":"mysql-bin.000009","Pos":999},"Action":"DML"}'


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
        more = {"kafka_offsets": offsets, "dead_letter_offset": self.publisher.letters_end} | more
        manifest = self.dumps.manifest(self.publisher.position, rows, **more)
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


class Killed(Exception):
    """The sink is killed."""


def kill_after_append(patch: pytest.MonkeyPatch) -> None:
    """Let the sink be killed when it has written a batch to the change log, and nothing of it to a mirror."""
    append = ChangeLog.append

    def append_and_die(*arguments: Any, **more: Any) -> None:
        append(*arguments, **more)
        raise Killed

    patch.setattr(ChangeLog, "append", append_and_die)


async def delete_topic(sink: Sink, admin: AIOKafkaAdminClient, table: Table) -> str:
    """Delete a table's topic, and wait until Kafka has done it."""
    [topic] = [name for name in sink.publisher.offsets if name.endswith(f".{table.name}")]
    del sink.publisher.offsets[topic]
    await admin.delete_topics([topic])
    async with asyncio.timeout(30):
        while topic in await admin.list_topics():  # noqa: ASYNC110 - only Kafka knows when that changes
            await asyncio.sleep(0.05)
    return topic
