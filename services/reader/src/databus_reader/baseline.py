"""The tables at the reader's position: from the schema history or, where it does not have them, from the database.

The database shows tables as they are now. They are used for the binlog after an earlier position only if no statement
after that position may have altered them.
"""

import re
from collections.abc import AsyncIterator

from databus_binlog import Query
from databus_binlog.session import Session
from databus_changes.catalog import read_tables
from databus_changes.charsets import charset_of
from databus_core import names
from databus_core.errors import START_OVER, SchemaHistoryCorrupt, SourceNotReady, SourceUnavailable, UnknownTable
from databus_core.events import SchemaDefinition, Table, TableDefinition
from databus_core.kafka_history import SchemaHistory, read_history
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics
from databus_core.progress import Progress
from databus_core.readiness import names_columns, require_named_columns
from databus_core.runtime import Health
from databus_core.settings import Settings, StartLatest, StartSnapshot
from databus_core.source_connection import connect_source
from databus_reader.entries import EntryWriter
from databus_reader.source.hosts import SourceConnection

log = get_logger(__name__)

_DDL = {b"CREATE", b"ALTER", b"DROP", b"RENAME"}
_WORDS = re.compile(rb"[0-9a-z_$]+")
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_$]+")
_CHARSETS = "SELECT schema_name, default_collation_name FROM information_schema.schemata"


class Baseline:
    """Determines the known tables at the start of each generation."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: the last row of a table that was not known, as its error describes it; "": none
        self._unknown = ""

    def read_missing_tables(self, error: UnknownTable) -> None:
        """From the next generation on, read tables that the history lacks. Raises the error if that did not help."""
        if self.has_read(error):
            raise error
        self._unknown = str(error)
        text = "the schema history lacks this table: reading it from information_schema"
        log.warning(LogEvent.TABLE_READ_AGAIN, text, **error.fields)

    def has_read(self, error: UnknownTable) -> bool:
        """Return whether missing tables were read already because of this error, and that did not help."""
        return str(error) == self._unknown

    async def tables(
        self, connection: SourceConnection, progress: Progress, entries: EntryWriter, health: Health
    ) -> SchemaHistory:
        """Return the known tables at the connection's position. Write those that the history lacks to the pipe."""
        settings = self._settings
        history = await read_history(settings)
        named = names_columns(connection.session.server)
        require_named_columns(settings, connection.session.server, connection.host)
        if progress.position is None:
            added = await self._read_first(connection, progress, health)
            dropped = history.tables.keys() - added.tables.keys()
            definitions = [*added.tables.values(), *(Table(schema=s, name=n, columns=()) for s, n in dropped)]
            history = added
        elif not (history.complete or named):
            raise SchemaHistoryCorrupt(
                f"the schema history in Kafka (topic {names.schema_topic(settings.name)}) is missing or incomplete, "
                f"and the binlog does not name columns: set binlog_row_metadata=FULL on the server; {START_OVER}"
            )
        elif self._unknown:
            added = await self._read_missing(connection, history, health)
            definitions = list(added.tables.values())
            history.tables |= added.tables
            history.charsets |= added.charsets
        else:
            return history
        await entries.write([TableDefinition(table) for table in definitions])
        await entries.write([SchemaDefinition(*schema) for schema in added.charsets.items()])
        return history

    async def _read_first(self, connection: SourceConnection, progress: Progress, health: Health) -> SchemaHistory:
        """Read the tables as they were at the connection's position, where the pipeline starts.

        No table is read if the binlog names the columns, except with `reader.start` at `latest` or `snapshot`. If DDL
        may have changed the tables since that position, raises SourceUnavailable with these two, because a retry starts
        at a later position, and SourceNotReady otherwise.
        """
        at_end = progress.snapshot or self._settings.reader.start in (StartLatest(), StartSnapshot())
        latest = progress.start is None and at_end
        if not latest and names_columns(connection.session.server):
            return SchemaHistory()
        history = await self._read(connection.session)
        async for ddl in self._ddl_since(connection, health):
            if not self._concerns_captured(ddl):
                continue
            if latest:
                raise SourceUnavailable(f"database {connection.host}: tables were altered while they were read")
            raise SourceNotReady(
                "the binlog does not name columns, and tables were altered since the position at which the pipeline "
                f"begins; {START_OVER}"
            )
        return history

    async def _read_missing(
        self, connection: SourceConnection, history: SchemaHistory, health: Health
    ) -> SchemaHistory:
        """Read the tables and character sets that the history lacks, but none that DDL may have changed since."""
        found = await self._read(connection.session)
        missing = {name: table for name, table in found.tables.items() if name not in history.tables}
        charsets = {schema: charset for schema, charset in found.charsets.items() if schema not in history.charsets}
        if missing or charsets:
            async for ddl in self._ddl_since(connection, health):
                words = _words(ddl)
                missing = {name: table for name, table in missing.items() if not _may_be_named(name[1], words)}
                charsets = {schema: each for schema, each in charsets.items() if not _may_be_named(schema, words)}
        metrics.TABLES_READ_AGAIN.inc(len(missing))
        return SchemaHistory(missing, charsets)

    async def _read(self, session: Session) -> SchemaHistory:
        source = self._settings.source
        charsets = {str(schema): charset_of(str(collation)) for schema, collation in await session.query(_CHARSETS)}
        return SchemaHistory(
            {(t.schema, t.name): t for t in await read_tables(session) if source.captures_some(t.schema)},
            {schema: charset for schema, charset in charsets.items() if source.captures_some(schema)},
            complete=True,
        )

    async def _ddl_since(self, connection: SourceConnection, health: Health) -> AsyncIterator[Query]:
        """Yield the statements after the connection's position, up to the binlog's end, that may be DDL."""
        async with connect_source(self._settings.source, connection.host) as session:
            stream = await session.dump(
                connection.position, server_id=self._settings.server_id, follow=False, wanted=lambda *_: False
            )
            async for events in stream:
                health.beat()
                for event in events:
                    if isinstance(event, Query) and any(word in event.query.upper() for word in _DDL):
                        yield event

    def _concerns_captured(self, ddl: Query) -> bool:
        source = self._settings.source
        return source.captures_some(ddl.schema) or source.mentions_some(ddl.query.decode(errors="replace"))


def _words(ddl: Query) -> set[bytes]:
    """Return a statement's words in lower case, and the default schema if an ALTER DATABASE may mean it."""
    words = set(_WORDS.findall(ddl.query.lower()))
    if b"alter" in words and words & {b"database", b"schema"}:
        words.add(ddl.schema.lower().encode())
    return words


def _may_be_named(name: str, words: set[bytes]) -> bool:
    """Return whether a name may be among a statement's words; one that needs quotes always may be."""
    return not _PLAIN_NAME.fullmatch(name) or name.lower().encode() in words
