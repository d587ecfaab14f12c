"""The tables at the position where a pipeline begins: from information_schema, if no DDL came in between."""

from databus import names
from databus.catalog import charset_of, read_tables
from databus.connections import connect_source
from databus.errors import START_AFRESH, SchemaHistoryCorrupt, SourceNotReady
from databus.events import SchemaDefinition, Table, TableDefinition
from databus.kafka_history import SchemaHistory, read_history
from databus.progress import Progress
from databus.readiness import names_columns
from databus.settings import Settings, Source
from databus_binlog import Position, Query, Session
from databus_reader.entries import EntryWriter

_ATTEMPTS = 5
_DDL = {b"CREATE", b"ALTER", b"DROP", b"RENAME"}
_CHARSETS = "SELECT schema_name, default_collation_name FROM information_schema.schemata"


async def begin(
    session: Session, settings: Settings, progress: Progress, entries: EntryWriter
) -> tuple[Position, SchemaHistory]:
    """Give the position to start from and the tables there; a first start resolves both and sends the tables."""
    history = await read_history(settings)
    if progress.position is not None:
        if not (history.complete or names_columns(session.server)):
            raise SchemaHistoryCorrupt(
                f"the schema history in Kafka (topic {names.schema_topic(settings.name)}) is missing or lacks its "
                f"head, and the binlog names no columns: set binlog_row_metadata=FULL on the server; {START_AFRESH}"
            )
        return progress.position, history
    start, first = await _resolve(session, settings)
    gone = [Table(schema=schema, name=name, columns=()) for schema, name in history.tables.keys() - first.tables.keys()]
    await entries.write([TableDefinition(table) for table in (*first.tables.values(), *gone)])
    await entries.write([SchemaDefinition(*schema) for schema in first.charsets.items()])
    return start, first


async def _resolve(session: Session, settings: Settings) -> tuple[Position, SchemaHistory]:
    """Resolve `reader.start`, and read the tables there. Raises SourceNotReady where they cannot be known."""
    if settings.reader.start == "latest":
        return await _at_end(session, settings)
    position = await session.earliest_position()
    if names_columns(session.server):
        return position, SchemaHistory()
    if history := await _at(session, settings, position):
        return position, history
    raise SourceNotReady(
        "the binlog names no columns, and tables were altered since it begins: set reader.start=latest, "
        "or binlog_row_metadata=FULL on the server"
    )


async def _at_end(session: Session, settings: Settings) -> tuple[Position, SchemaHistory]:
    for _ in range(_ATTEMPTS):
        position = await session.current_position()
        if history := await _at(session, settings, position):
            return position, history
    raise SourceNotReady("tables are altered all the time; start again when there is no DDL for a few seconds")


async def _at(session: Session, settings: Settings, position: Position) -> SchemaHistory | None:
    """Read the tables; None if there was DDL on them since the position."""
    source = settings.source
    tables = await read_tables(session)
    charsets = {str(schema): charset_of(str(collation)) for schema, collation in await session.query(_CHARSETS)}
    if await _has_ddl(settings, position):
        return None
    return SchemaHistory(
        {(table.schema, table.name): table for table in tables if source.captures_some(table.schema)},
        {schema: charset for schema, charset in charsets.items() if source.captures_some(schema)},
        complete=True,
    )


async def _has_ddl(settings: Settings, position: Position) -> bool:
    """Say whether the log has DDL that may concern captured schemas, from a position to its end."""
    async with connect_source(settings.source) as session:
        stream = await session.dump(position, server_id=settings.server_id, follow=False, wanted=lambda *_: False)
        async for events in stream:
            if any(isinstance(event, Query) and _concerns(settings.source, event) for event in events):
                return True
    return False


def _concerns(source: Source, event: Query) -> bool:
    if not any(word in event.query.upper() for word in _DDL):
        return False
    return source.captures_some(event.schema) or source.mentions_some(event.query.decode(errors="replace"))
