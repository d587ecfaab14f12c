"""The tables of a replica: changes are written to them together with the bookmark."""

from collections.abc import Iterable

from sqlalchemy import Connection, Engine, MetaData, Table, delete, inspect
from sqlalchemy.exc import DataError

from databus.block import Block
from databus.bookmark import Bookmark
from databus.sql_store import SqlStore
from databus.sql_table import LEAVE_OUT, ReplicaTable
from databus_core import events
from databus_core.errors import InvalidSettings, SchemaMismatch
from databus_core.events import Action
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger

log = get_logger(__name__)


class Replica:
    """Tables in PostgreSQL or SQLite, by the names that they have in the source. All methods block."""

    def __init__(self, engine: Engine, store: SqlStore, schema: str | None) -> None:
        """Raises InvalidSettings for another kind of database."""
        if engine.dialect.name not in ("postgresql", "sqlite"):
            raise InvalidSettings(f"apply writes to PostgreSQL and SQLite, and not to {engine.dialect.name}")
        self._engine = engine
        self._store = store
        self._schema = schema
        #: by name: a table as it is now
        self._tables: dict[str, ReplicaTable] = {}
        #: tables without a primary key that were logged
        self._left_out: set[str] = set()

    def write(self, blocks: Iterable[Block], bookmark: Bookmark) -> None:
        """Write changes, and the bookmark after them, in one transaction. Raises SQLAlchemy's errors."""
        with self._engine.begin() as connection:
            for block in blocks:
                self._write(connection, block)
            self._store.write(bookmark, connection)

    def create(self, definition: events.Table) -> None:
        """Create a table without rows, in place of one with the same name. Without a primary key, only drop it."""
        with self._engine.begin() as connection:
            if self._is_followed(definition):
                self._create(connection, definition)
            else:
                self._drop(connection, definition.name)

    def load(self, block: Block) -> None:
        """Write rows of a dump."""
        with self._engine.begin() as connection:
            self._write(connection, block)

    def drop(self, name: str) -> None:
        """Drop the table `schema.table` if it is there."""
        with self._engine.begin() as connection:
            self._drop(connection, name.partition(".")[2])

    def has(self, definition: events.Table) -> bool:
        """Return whether the database has a table with this name."""
        return inspect(self._engine).has_table(definition.name, self._schema)

    def _write(self, connection: Connection, block: Block) -> None:
        if not self._is_followed(block.rows.table):
            return
        try:
            self._execute(connection, block)
        except DataError as error:
            raise SchemaMismatch(
                f"a value of {block.rows.table.full_name} cannot be stored: {type(error.orig).__name__}; {LEAVE_OUT}"
            ) from None  # the cause quotes the value

    def _execute(self, connection: Connection, block: Block) -> None:
        definition, images = block.rows.table, block.images
        match block.action:
            case Action.CREATE:
                self._create(connection, definition)
            case Action.DROP:
                self._drop(connection, definition.name)
            case Action.TRUNCATE:
                connection.execute(delete(self._table(connection, definition).table))
            case Action.INSERT:
                self._table(connection, definition).insert(connection, images)
            case Action.UPDATE:
                self._table(connection, definition).update(connection, images)
            case Action.DELETE:
                self._table(connection, definition).delete(connection, images)

    def _table(self, connection: Connection, definition: events.Table) -> ReplicaTable:
        known = self._tables.get(definition.name)
        if known and known.source == definition:
            return known
        kept = self._keep(definition)
        kept.table.create(connection, checkfirst=True)
        return kept

    def _create(self, connection: Connection, definition: events.Table) -> None:
        kept = self._keep(definition)
        kept.table.drop(connection, checkfirst=True)
        kept.table.create(connection)

    def _drop(self, connection: Connection, name: str) -> None:
        self._tables.pop(name, None)
        Table(name, MetaData(), schema=self._schema).drop(connection, checkfirst=True)

    def _keep(self, definition: events.Table) -> ReplicaTable:
        known = self._tables.get(definition.name)
        if known and known.source.schema != definition.schema:
            raise InvalidSettings(
                f"{known.source.full_name} and {definition.full_name} would be the same table: apply the changes of "
                "each schema by itself, with `schema` as the schema of the replica"
            )
        kept = self._tables[definition.name] = ReplicaTable(definition, self._schema, self._engine.dialect.name)
        return kept

    def _is_followed(self, definition: events.Table) -> bool:
        """Return whether a table has a primary key, without which its rows cannot be found; log it once if not."""
        if not definition.primary_key and definition.full_name not in self._left_out:
            self._left_out.add(definition.full_name)
            text = f"{definition.full_name} is not in the replica: it has no primary key"
            log.warning(LogEvent.TABLE_NOT_MIRRORED, text, table=definition.full_name)
        return bool(definition.primary_key)
