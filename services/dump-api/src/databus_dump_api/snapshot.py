"""Take one dump: Kafka offsets → host → table definitions → view with its position → rows of each table.

The view is opened after Kafka's end offsets were read. It contains everything that was in the binlog when the view was
opened. So every change is in the dump, or in Kafka from these offsets on, or in both; consumers drop the changes that
are in both, by comparing positions. With `exactly_once`, only committed records precede the offsets. So the progress,
which is read next, covers all these records, and the server that the progress names has their changes. Any error fails
the dump.
"""

from datetime import UTC, datetime

import msgspec

from databus_changes.matching import with_declared_types
from databus_changes.snapshot.limits import ReadLimits
from databus_changes.snapshot.views import open_views
from databus_core import kafka_client, names
from databus_core.errors import InvalidSettings
from databus_core.events import Table
from databus_core.kafka_history import read_history
from databus_core.kafka_progress import read_progress
from databus_core.kafka_topics import partitions_of
from databus_core.manifest import FileFormat, Manifest, State
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.routes import fingerprint
from databus_core.settings import Settings
from databus_dump_api.progress import Progress
from databus_dump_api.records import write_records
from databus_dump_api.rows import write_tables
from databus_dump_api.store import Output
from databus_dump_api.table_copy import TableCopy
from databus_dump_api.tables import PublishedTable, publishing_rule, read_state, table_topics

#: topic → partition → offset
Offsets = dict[str, dict[int, int]]

#: the session that reads definitions is idle while rows are read; MySQL would show sizes that are up to a day old
_CATALOG_SESSION = {
    "mariadb": "SET SESSION wait_timeout = 2147483",
    "mysql": "SET SESSION wait_timeout = 2147483, information_schema_stats_expiry = 0",
}


async def take(settings: Settings, manifest: Manifest, output: Output, counted: Progress) -> Manifest:
    """Write all files of a dump to `output`, count its rows, and return its complete manifest."""
    topics = (table_topics(settings, table) for table in manifest.tables)
    letters = names.dead_letter_topic(settings.name)
    offsets = await end_offsets(settings, {letters}.union(*topics))
    letters_end = offsets.pop(letters, {0: 0})[0]
    progress = await read_progress(settings, to_end=True)
    history = await read_history(settings)
    async with connect_pipeline_host(settings.source, progress) as (host, catalog):
        await catalog.query(_CATALOG_SESSION[catalog.server.flavor])
        states = [await read_state(catalog, table) for table in manifest.tables]
        tables = [
            with_declared_types(table, history.tables.get((table.schema, table.name)))
            for table in (state.table for state in states)
        ]
        published = [_published(settings, table) for table in tables]
        copies = [TableCopy(settings.dumps, output, *each) for each in zip(states, published, strict=True)]
        for copy in copies:
            await copy.divide(catalog)
        counted.begin(sum(state.estimated_rows for state in states))
        server = catalog.server.identity
        async with open_views(settings.source, host, settings.dumps.connections, server=server) as views:
            files = await write_tables(copies, views, catalog, limits_of(settings), counted)
    complete = msgspec.structs.replace(
        manifest,
        state=State.COMPLETE,
        formats=tuple(each for each in FileFormat if each in settings.dumps.formats),
        completed=datetime.now(UTC),
        source=f"{catalog.server.flavor} {catalog.server.version} {catalog.server.identity}",
        position=views[0].position,
        kafka_offsets=offsets,
        dead_letter_offset=letters_end,
        # Before the reader has begun, a reset has an ordinal, but nobody knows where the changes after it begin.
        transaction=progress.transaction if progress and progress.position else 0,
        rules=fingerprint(settings.publisher.rules),
        tables=tuple(shown.table for shown in published),
        files=tuple(files),
    )
    return msgspec.structs.replace(complete, files=(*files, *await write_records(settings, complete, output)))


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


def limits_of(settings: Settings) -> ReadLimits:
    """Return what bounds a dump."""
    chosen = settings.dumps
    return ReadLimits(
        settings.source,
        "dumps",
        rows_per_second=chosen.rows_per_second,
        replica_lag=chosen.replica_lag,
    )
