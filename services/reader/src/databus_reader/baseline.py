"""The tables at the reader's position: from the schema history or, at a pipeline's first start, from the database."""

from databus import names
from databus.errors import START_OVER, SchemaHistoryCorrupt, SourceNotReady, SourceUnavailable
from databus.events import SchemaDefinition, Table, TableDefinition
from databus.kafka_history import SchemaHistory, read_history
from databus.progress import Progress
from databus.readiness import names_columns
from databus.runtime import Health
from databus.settings import Settings, Source, StartLatest
from databus.source_connection import connect_source
from databus_binlog import Query
from databus_binlog.session import Session
from databus_changes.catalog import read_tables
from databus_changes.charsets import charset_of
from databus_reader.entries import EntryWriter
from databus_reader.source.hosts import SourceConnection

_DDL = {b"CREATE", b"ALTER", b"DROP", b"RENAME"}
_CHARSETS = "SELECT schema_name, default_collation_name FROM information_schema.schemata"


async def start_history(
    connection: SourceConnection, settings: Settings, progress: Progress, entries: EntryWriter, health: Health
) -> SchemaHistory:
    """Return the known tables at the reader's position. At a pipeline's first start, also write them to the pipe."""
    history = await read_history(settings)
    if settings.publisher.delivery == "at_least_once" and not names_columns(connection.session.server):
        raise SourceNotReady(
            f"database {connection.host}: the binlog does not name columns, and with publisher.delivery=at_least_once "
            "the schema history may be ahead of rows that are read again: set binlog_row_metadata=FULL on the server"
        )
    if progress.position is not None:
        if not (history.complete or names_columns(connection.session.server)):
            raise SchemaHistoryCorrupt(
                f"the schema history in Kafka (topic {names.schema_topic(settings.name)}) is missing or incomplete, "
                f"and the binlog does not name columns: set binlog_row_metadata=FULL on the server; {START_OVER}"
            )
        return history
    first = await _read_first(connection, settings, health)
    dropped = [
        Table(schema=schema, name=name, columns=()) for schema, name in history.tables.keys() - first.tables.keys()
    ]
    await entries.write([TableDefinition(table) for table in (*first.tables.values(), *dropped)])
    await entries.write([SchemaDefinition(*schema) for schema in first.charsets.items()])
    return first


async def _read_first(connection: SourceConnection, settings: Settings, health: Health) -> SchemaHistory:
    """Read the tables as they were at the connection's position.

    No table is read if the binlog names the columns, except with `reader.start=latest`. If DDL may have changed the
    tables since that position, raises SourceUnavailable with `latest`, because a retry starts at a later position, and
    SourceNotReady otherwise.
    """
    latest = settings.reader.start == StartLatest()
    if not latest and names_columns(connection.session.server):
        return SchemaHistory()
    history = await _read(connection.session, settings.source)
    if not await _has_ddl(connection, settings, health):
        return history
    if latest:
        raise SourceUnavailable(f"database {connection.host}: tables were altered while they were read")
    raise SourceNotReady(
        "the binlog does not name columns, and tables were altered since reader.start: set reader.start=latest, "
        "or binlog_row_metadata=FULL on the server"
    )


async def _read(session: Session, source: Source) -> SchemaHistory:
    tables = await read_tables(session)
    charsets = {str(schema): charset_of(str(collation)) for schema, collation in await session.query(_CHARSETS)}
    return SchemaHistory(
        {(table.schema, table.name): table for table in tables if source.captures_some(table.schema)},
        {schema: charset for schema, charset in charsets.items() if source.captures_some(schema)},
        complete=True,
    )


async def _has_ddl(connection: SourceConnection, settings: Settings, health: Health) -> bool:
    """Return whether the binlog after the connection's position has DDL that may concern captured schemas."""
    async with connect_source(settings.source, connection.host) as session:
        stream = await session.dump(
            connection.position, server_id=settings.server_id, follow=False, wanted=lambda *_: False
        )
        async for events in stream:
            health.beat()
            if any(isinstance(event, Query) and _concerns(settings.source, event) for event in events):
                return True
    return False


def _concerns(source: Source, event: Query) -> bool:
    if not any(word in event.query.upper() for word in _DDL):
        return False
    return source.captures_some(event.schema) or source.mentions_some(event.query.decode(errors="replace"))
