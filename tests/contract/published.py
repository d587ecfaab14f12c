"""What a pipeline publishes of the matrix (common/column_types.py), without Kafka: as the client reads it."""

import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

from aiokafka import ConsumerRecord

from common.column_types import tables
from common.connections import printing, session_on
from databus import Bookmark, Change
from databus.block import Block
from databus.formats.others import FORMATS
from databus.merge import sequence_of
from databus.records import RecordReader
from databus.source import Source
from databus.trail import Trail
from databus_changes.catalog import read_table
from databus_changes.ddl.dialect import dialect_of
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_core.change_topics import ChangeTopics
from databus_core.events import Event
from databus_core.kafka_history import SchemaHistory
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings import Source as SourceSettings
from databus_messages.encoder import EventEncoder
from databus_messages.formats.base import MessageSource
from databus_messages.outputs import plan_outputs
from devstack import Kind, Server


class Published(NamedTuple):
    """What a reader has sent, and where from."""

    kind: Kind
    schema: str
    events: list[Event]

    async def read(self, format_name: str, **options: Any) -> list[Change]:
        """Publish in a format, and read with the client."""
        trail = Trail(Bookmark(pipeline="p", tables=["*.*"], offsets={}))
        return [change async for block in self.blocks(format_name, **options) for change in block.changes(trail)]

    async def blocks(self, format_name: str, **options: Any) -> AsyncIterator[Block]:
        """Publish in a format, and yield what the client makes of each record."""
        rules = [{"match": ["*.*"], "format": format_name, "options": options}]
        settings = Settings(name="p", publisher={"routes": rules})
        topics = ChangeTopics(settings, ["*.*"], FORMATS)
        reader = RecordReader(
            Source(settings, None, ["*.*"], topics), Bookmark(pipeline="p", tables=["*.*"], offsets={})
        )
        for record in self._records(settings):
            for block in await reader.blocks(sequence_of(record), record):
                yield block

    def _records(self, settings: Settings) -> Iterator[ConsumerRecord[Any, Any]]:
        rules = settings.publisher.rules
        encoder = EventEncoder(
            rules, plan_outputs(rules), MessageSource("p", self.kind, "", 0), defaultdict[str, int](lambda: 1)
        )
        for message in (message for event in self.events for message in encoder.messages(event)):
            for key, value, headers, topic, _ in message.sequenced():
                place = (topic or message.partitions[0].topic, 0, 0, 0, 0)
                yield ConsumerRecord(*place, key, value, None, 0, 0, tuple(headers))


async def publish(source: Server, schema: str) -> Published:
    """Insert, update and delete every row of the matrix in a schema."""
    captured = SourceSettings(include=[f"{schema}.*"])
    async with printing(source) as run, session_on(source) as queries, session_on(source) as log:
        start = await queries.current_position()
        for table in tables(source.kind):
            for statement in [f"USE {schema}", *table.creation, "BEGIN", table.insert]:
                await run(statement)
            for row in range(table.rows):
                await run(table.update(row))
            await run("COMMIT")
            await run(f"DELETE FROM {table.name}")
        tracker = TableTracker(
            SchemaHistory(charsets={schema: "utf8mb4"}),
            await dialect_of(queries),
            lookup=lambda schema, name: read_table(queries, schema, name),
            tracks=captured.captures_some,
        )
        translator = Translator(captured, source.kind, tracker, Progress())
        stream = await log.dump(
            start,
            server_id=secrets.randbelow(2**31) + 1000,
            follow=False,
            wanted=captured.captures,
            describe=tracker.describe,
        )
        events = [event async for each in stream for event in await translator.translate(list(each), each.tables)]
    return Published(source.kind, schema, events)
