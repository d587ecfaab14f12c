"""Take a snapshot: offsets → host → definitions → view with its position → rows of each table.

Kafka's offsets are read before the position, and the view has all that the log had by then, so nothing falls between;
what lies in both, a consumer drops by comparing positions. The offsets are those of committed records, so that the
progress, which is read next, names the server that all before them came from. Nothing is ever read again at a later
position: what goes wrong fails the dump.
"""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from databus.connections import kafka_errors
from databus.errors import InvalidSettings
from databus.events import Table
from databus.kafka_client import running
from databus.kafka_progress import read_progress
from databus.manifest import DumpFile, Manifest, State
from databus.metrics import DUMP_ROWS
from databus.settings import Settings
from databus_dump_api.content import Content, rule_of, topic_of
from databus_dump_api.parts import Parts
from databus_dump_api.select import select
from databus_dump_api.source import connect_read
from databus_dump_api.tables import define, require_unchanged
from databus_dump_api.view import View, open_view

Offsets = dict[str, dict[int, int]]

#: the session is idle for as long as it takes to read the largest table
_PATIENT = "SET SESSION wait_timeout = 2147483"


async def take(settings: Settings, manifest: Manifest, folder: Path) -> Manifest:
    """Write all files of a dump into `folder` and give its complete manifest."""
    topics = (topic_of(settings, table) for table in manifest.tables)
    offsets = await end_offsets(settings, set().union(*topics))
    progress = await read_progress(settings, whole=True)
    async with connect_read(settings.source, progress) as (host, catalog):
        await catalog.query(_PATIENT)
        definitions = [await define(catalog, table) for table in manifest.tables]
        contents = [_content(settings, definition.table) for definition in definitions]
        files: list[DumpFile] = []
        async with open_view(settings.source, host, catalog) as view:
            for definition, content in zip(definitions, contents, strict=True):
                parts = Parts(folder, content.table, settings.dumps.part_size, strict=content.strict)
                files += await _write(view, definition.table, content, parts)
                await require_unchanged(catalog, definition)
                await view.let_go()
    return msgspec.structs.replace(
        manifest,
        state=State.COMPLETE,
        completed=datetime.now(UTC),
        source=f"{catalog.server.flavor} {catalog.server.version} {catalog.server.identity}",
        position=view.position,
        kafka_offsets=offsets,
        tables=tuple(content.table for content in contents),
        files=tuple(files),
    )


async def end_offsets(settings: Settings, topics: set[str]) -> Offsets:
    """Read where the committed records of those topics that exist end. Raises KafkaUnavailable."""
    servers = settings.kafka.bootstrap_servers
    with kafka_errors():
        async with (
            running(AIOKafkaAdminClient(bootstrap_servers=servers)) as admin,
            running(AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")) as consumer,
        ):
            # Asked for all topics, for asking for one by its name could create it.
            existing = [topic for topic in await admin.describe_topics() if topic["topic"] in topics]
            partitions = [TopicPartition(t["topic"], p["partition"]) for t in existing for p in t["partitions"]]
            ends = await consumer.end_offsets(partitions)
    offsets: Offsets = {}
    for partition, end in sorted(ends.items()):
        offsets.setdefault(partition.topic, {})[partition.partition] = end
    return offsets


def _content(settings: Settings, table: Table) -> Content:
    rule = rule_of(settings, table)
    if rule is None:
        raise InvalidSettings(f"{table.schema}.{table.name} is not published any more; request a new dump")
    return Content(settings, rule, table)


async def _write(view: View, table: Table, content: Content, parts: Parts) -> list[DumpFile]:
    try:
        async with aclosing(view.batches(select(table))) as batches:
            async for batch in batches:
                if rows := content.rows(batch):
                    await asyncio.to_thread(parts.write, rows)
                    DUMP_ROWS.inc(len(rows))
        return await asyncio.to_thread(parts.close)
    finally:
        parts.abandon()
