"""Take one dump: Kafka offsets → host → table definitions → view with its position → rows of each table.

The view is opened after Kafka's end offsets were read. It contains everything that was in the binlog when the view was
opened. So every change is in the dump, or in Kafka from these offsets on, or in both; consumers drop the changes that
are in both, by comparing positions. With `exactly_once`, only committed records precede the offsets. So the progress,
which is read next, covers all these records, and the server that the progress names has their changes. Any error fails
the dump.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from databus_changes.matching import with_declared_types
from databus_changes.snapshot.select import select
from databus_changes.snapshot.view import View, open_view
from databus_core import kafka_client, names
from databus_core.errors import InvalidSettings
from databus_core.events import Table
from databus_core.kafka_history import read_history
from databus_core.kafka_progress import read_progress
from databus_core.kafka_topics import partitions_of
from databus_core.manifest import DumpFile, FileFormat, Manifest, State
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.routes import fingerprint
from databus_core.settings import Settings
from databus_dump_api.parts import PartWriter
from databus_dump_api.progress import Progress
from databus_dump_api.tables import PublishedTable, publishing_rule, read_state, require_unchanged, table_topics
from databus_wire.packed_rows import PackedRows

#: topic → partition → offset
Offsets = dict[str, dict[int, int]]

#: bytes of a Parquet file at which the next one is begun
_PARQUET_PART = 128 * 2**20
#: the session that reads definitions is idle while rows are read
_LONG_IDLE = "SET SESSION wait_timeout = 2147483"


async def take(settings: Settings, manifest: Manifest, folder: Path, counted: Progress) -> Manifest:
    """Write all files of a dump into `folder`, count its rows, and return its complete manifest."""
    topics = (table_topics(settings, table) for table in manifest.tables)
    letters = names.dead_letter_topic(settings.name)
    offsets = await end_offsets(settings, {letters}.union(*topics))
    letters_end = offsets.pop(letters, {0: 0})[0]
    progress = await read_progress(settings, to_end=True)
    history = await read_history(settings)
    async with connect_pipeline_host(settings.source, progress) as (host, catalog):
        await catalog.query(_LONG_IDLE)
        states = [await read_state(catalog, table) for table in manifest.tables]
        tables = [
            with_declared_types(table, history.tables.get((table.schema, table.name)))
            for table in (state.table for state in states)
        ]
        published = [_published(settings, table) for table in tables]
        sizes = _part_sizes(settings)
        files: list[DumpFile] = []
        counted.begin(sum(state.estimated_rows for state in states))
        async with open_view(settings.source, host) as view:
            for state, shown in zip(states, published, strict=True):
                parts = [PartWriter(folder, shown.table, *each, strict=shown.strict) for each in sizes.items()]
                files += await _write_rows(view, state.table, shown, parts, counted)
                await require_unchanged(catalog, state)
                await view.release_table()
    return msgspec.structs.replace(
        manifest,
        state=State.COMPLETE,
        formats=tuple(sizes),
        completed=datetime.now(UTC),
        source=f"{catalog.server.flavor} {catalog.server.version} {catalog.server.identity}",
        position=view.position,
        kafka_offsets=offsets,
        dead_letter_offset=letters_end,
        # Before the reader has begun, a reset has an ordinal, but nobody knows where the changes after it begin.
        transaction=progress.transaction if progress and progress.position else 0,
        rules=fingerprint(settings.publisher.rules),
        tables=tuple(shown.table for shown in published),
        files=tuple(files),
    )


async def end_offsets(settings: Settings, topics: set[str]) -> Offsets:
    """Read the end offsets of committed records, for those of the topics that exist.

    Raises KafkaUnavailable, and FatalError if Kafka refuses access.
    """
    async with kafka_client.admin(settings.kafka) as admin, kafka_client.consumer(settings.kafka) as consumer:
        ends = await consumer.end_offsets(await partitions_of(admin, topics.__contains__))
    offsets: Offsets = {}
    for partition, end in sorted(ends.items()):
        offsets.setdefault(partition.topic, {})[partition.partition] = end
    return offsets


def _published(settings: Settings, table: Table) -> PublishedTable:
    rule = publishing_rule(settings, table)
    if rule is None:
        raise InvalidSettings(f"table {table.full_name} is no longer published; request a new dump")
    return PublishedTable(settings, rule, table)


def _part_sizes(settings: Settings) -> dict[FileFormat, int]:
    """Return the formats of a dump's files, and the size of a part in each."""
    sizes = {FileFormat.JSONL: settings.dumps.part_size, FileFormat.PARQUET: _PARQUET_PART}
    return {each: size for each, size in sizes.items() if each in settings.dumps.formats}


async def _write_rows(
    view: View, table: Table, published: PublishedTable, parts: Sequence[PartWriter], counted: Progress
) -> list[DumpFile]:
    try:
        async with aclosing(view.batches(select(table))) as batches:
            async for batch in batches:
                read = PackedRows(batch.rows)
                if rows := published.rows(read):
                    for each in parts:
                        await asyncio.to_thread(each.write, rows)
                counted.add(read=len(read), written=len(rows))
        return [file for each in parts for file in await asyncio.to_thread(each.close)]
    finally:
        for each in parts:
            each.abandon()
