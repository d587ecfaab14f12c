"""What a dump begins with: Kafka's offsets, then the host that the pipeline reads, and its tables.

The offsets are read first, then the progress. With `exactly_once`, only committed records precede the offsets. So the
progress covers all these records, and the server that the progress names has their changes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from databus_binlog.session import Session
from databus_changes.matching import with_declared_types
from databus_changes.snapshot.limits import ReadLimits
from databus_core import kafka_client, names
from databus_core.errors import DumpUnusable, InvalidSettings
from databus_core.events import Table
from databus_core.kafka_ends import Offsets, by_topic
from databus_core.kafka_history import read_history
from databus_core.kafka_progress import read_progress
from databus_core.kafka_topics import partitions_of
from databus_core.manifest import Manifest
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.progress import Progress
from databus_core.routes import fingerprint
from databus_core.settings import Settings
from databus_dump_api.store import Output
from databus_dump_api.table_copy import TableCopy
from databus_dump_api.tables import PublishedTable, find_tables, publishing_rule, read_state, table_topics

#: the session that reads definitions is idle while rows are read; MySQL would show sizes that are up to a day old
_CATALOG_SESSION = {
    "mariadb": "SET SESSION wait_timeout = 2147483",
    "mysql": "SET SESSION wait_timeout = 2147483, information_schema_stats_expiry = 0",
}


@dataclass(frozen=True)
class SourceTables:
    """The tables of a dump on the host that the pipeline reads."""

    host: str
    #: reads definitions
    catalog: Session
    copies: list[TableCopy]

    @property
    def source(self) -> str:
        """The server, as in a manifest."""
        server = self.catalog.server
        return f"{server.flavor} {server.version} {server.identity}"

    @property
    def published(self) -> tuple[Table, ...]:
        """The definitions, with the published columns only."""
        return tuple(copy.published.table for copy in self.copies)

    @property
    def estimated_rows(self) -> int:
        """The server's estimate of the rows of all tables."""
        return sum(copy.state.estimated_rows for copy in self.copies)


async def begin(settings: Settings, manifest: Manifest) -> tuple[Manifest, Progress | None]:
    """Return the manifest with the places in Kafka from which a consumer reads after the dump, and the progress."""
    topics = (table_topics(settings, table) for table in manifest.tables)
    letters = names.dead_letter_topic(settings.name)
    offsets = await end_offsets(settings, {letters}.union(*topics))
    letters_end = offsets.pop(letters, {0: 0})[0]
    progress = await read_progress(settings, to_end=True)
    begun = msgspec.structs.replace(
        manifest,
        kafka_offsets=offsets,
        dead_letter_offset=letters_end,
        # Before the reader has begun, a reset has an ordinal, but nobody knows where the changes after it begin.
        transaction=progress.transaction if progress and progress.position else 0,
        rules=fingerprint(settings.publisher.rules),
    )
    return begun, progress


@asynccontextmanager
async def open_tables(
    settings: Settings, manifest: Manifest, progress: Progress | None, output: Output
) -> AsyncIterator[SourceTables]:
    """Connect to the host of the pipeline, and read the definitions of the tables of a dump.

    They are looked up again, because some may have been created since the request, unless the dump is resumed.
    """
    history = await read_history(settings)
    async with connect_pipeline_host(settings.source, progress) as (host, catalog):
        await catalog.query(_CATALOG_SESSION[catalog.server.flavor])
        wanted = manifest.tables if manifest.chunks else await find_tables(catalog, settings, manifest.requested)
        states = [await read_state(catalog, table) for table in wanted]
        tables = [
            with_declared_types(table, history.tables.get((table.schema, table.name)))
            for table in (state.table for state in states)
        ]
        published = [_published(settings, table) for table in tables]
        copies = [TableCopy(settings.dumps, output, *each) for each in zip(states, published, strict=True)]
        yield SourceTables(host, catalog, copies)


async def require_all(settings: Settings, manifest: Manifest, catalog: Session) -> None:
    """Raise DumpUnusable if there are more tables now, when a view is open: consumers would miss their first rows."""
    known = {(table.schema, table.name) for table in manifest.tables}
    for table in await find_tables(catalog, settings, manifest.requested):
        if (table.schema, table.name) not in known:
            raise DumpUnusable(f"table {table.full_name} was created while the dump began: request a new dump")


async def end_offsets(settings: Settings, topics: set[str]) -> Offsets:
    """Read the end offsets of committed records, for those of the topics that exist.

    Raises KafkaUnavailable, and FatalError if Kafka refuses access.
    """
    async with kafka_client.admin(settings.kafka) as admin, kafka_client.consumer(settings.kafka) as consumer:
        ends = await consumer.end_offsets(await partitions_of(admin, topics.__contains__))
    return by_topic(dict(sorted(ends.items())))


def limits_of(settings: Settings) -> ReadLimits:
    """Return what bounds a dump."""
    chosen = settings.dumps
    return ReadLimits(
        settings.source,
        "dumps",
        rows_per_second=chosen.rows_per_second,
        replica_lag=chosen.replica_lag,
    )


def _published(settings: Settings, table: Table) -> PublishedTable:
    rule = publishing_rule(settings, table)
    if rule is None:
        raise InvalidSettings(f"table {table.full_name} is no longer published; request a new dump")
    return PublishedTable(settings, rule, table)
