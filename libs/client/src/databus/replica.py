"""The tables of a replica: changes are written to them together with the bookmark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, MetaData, Table, delete, inspect
from sqlalchemy.exc import DBAPIError

from databus.block import Block
from databus.bookmark import Bookmark
from databus.sql_database import database_of
from databus.sql_store import SqlStore
from databus.sql_table import LEAVE_OUT, ReplicaTable
from databus_core import events
from databus_core.errors import InvalidSettings, SchemaMismatch
from databus_core.events import Action
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger

log = get_logger(__name__)


class Replica:
    """Tables of an SQL database, by the names that they have in the source. All methods block.

    In MySQL and MariaDB, CREATE and DROP TABLE are committed at once, with all that was done before in the transaction.
    So they come before the first row of a transaction, and doing them again has the same result: a table that is there
    is replaced by an empty one. The rows and the bookmark are written together after them.
    """

    def __init__(self, engine: Engine, store: SqlStore, schema: str | None) -> None:
        """Raises InvalidSettings for another kind of database."""
        self._database = database_of(engine)
        self._engine = engine
        self._store = store
        self._schema = schema
        #: by name: a table as it is now
        self._tables: dict[str, ReplicaTable] = {}
        #: tables without a primary key that were logged
        self._left_out: set[str] = set()
        #: the schema of the source that the tables would be in; None: the database is another server
        self._own: str | None = None

    def server(self) -> str:
        """Return the identity of the database's server; empty if it is of a kind that is not a source."""
        with self._engine.begin() as connection:
            return self._database.server(connection)

    def leave_source(self) -> None:
        """Refuse the tables of the source whose place the replica's would take: it is the same server."""
        self._own = self._schema or inspect(self._engine).default_schema_name

    def write(self, blocks: Sequence[Block], bookmark: Bookmark) -> None:
        """Write changes, and the bookmark after them, in one transaction. Raises SQLAlchemy's errors.

        A statement must be the first change.
        """
        with self._database.begin(self._engine) as connection:
            for block in blocks:
                if block.query is None and self._is_followed(block.rows.table):
                    self._table(connection, block.rows.table)
            for block in blocks:
                self._write(connection, block)
            self._store.write(bookmark, connection)

    def create(self, definition: events.Table) -> None:
        """Create a table without rows, in place of one with the same name. Without a primary key, only drop it."""
        with self._database.begin(self._engine) as connection:
            if self._is_followed(definition):
                self._create(connection, definition)
            else:
                self._drop(connection, definition.full_name)

    def load(self, block: Block) -> None:
        """Write rows of a dump."""
        with self._database.begin(self._engine) as connection:
            self._write(connection, block)

    def drop(self, name: str) -> None:
        """Drop the table `schema.table` if it is there."""
        with self._engine.begin() as connection:
            self._drop(connection, name)

    def has(self, definition: events.Table) -> bool:
        """Return whether the database has a table with this name."""
        return inspect(self._engine).has_table(definition.name, self._schema)

    def _write(self, connection: Connection, block: Block) -> None:
        if not self._is_followed(block.rows.table):
            return
        with self._refusing(f"a value of {block.rows.table.full_name} cannot be stored"):
            self._execute(connection, block)

    @contextmanager
    def _refusing(self, what: str) -> Iterator[None]:
        """Raise SchemaMismatch if the database refuses a value or a table."""
        try:
            yield
        except DBAPIError as error:
            if reason := self._database.refusal(error):
                raise SchemaMismatch(f"{what}: {reason}; {LEAVE_OUT}") from None  # the cause quotes the value
            raise

    def _execute(self, connection: Connection, block: Block) -> None:
        definition, images = block.rows.table, block.images
        match block.action:
            case Action.CREATE:
                self._create(connection, definition)
            case Action.DROP:
                self._drop(connection, definition.full_name)
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
        with self._refusing(f"{definition.full_name} cannot be created"):
            kept.table.create(connection, checkfirst=True)
        return kept

    def _create(self, connection: Connection, definition: events.Table) -> None:
        kept = self._keep(definition)
        with self._refusing(f"{definition.full_name} cannot be created"):
            kept.table.drop(connection, checkfirst=True)
            kept.table.create(connection)

    def _drop(self, connection: Connection, full_name: str) -> None:
        schema, _, name = full_name.partition(".")
        self._require_copy(schema, name)
        self._tables.pop(name, None)
        Table(name, MetaData(), schema=self._schema).drop(connection, checkfirst=True)

    def _keep(self, definition: events.Table) -> ReplicaTable:
        self._require_copy(definition.schema, definition.name)
        known = self._tables.get(definition.name)
        if known and known.source.schema != definition.schema:
            raise InvalidSettings(
                f"{known.source.full_name} and {definition.full_name} would be the same table: apply the changes of "
                "each schema by itself, with `schema` as the schema of the replica"
            )
        kept = self._tables[definition.name] = ReplicaTable(definition, self._schema, self._database)
        return kept

    def _require_copy(self, schema: str, name: str) -> None:
        """Raise InvalidSettings if a table of the replica would be the one of the source."""
        if self._own is not None and schema.lower() == self._own.lower():
            raise InvalidSettings(
                f"{schema}.{name} is the source's own table: apply to another server, or with another `schema`"
            )

    def _is_followed(self, definition: events.Table) -> bool:
        """Return whether a table has a primary key, without which its rows cannot be found; log it once if not."""
        if not definition.primary_key and definition.full_name not in self._left_out:
            self._left_out.add(definition.full_name)
            text = f"{definition.full_name} is not in the replica: it has no primary key"
            log.warning(LogEvent.TABLE_NOT_MIRRORED, text, table=definition.full_name)
        return bool(definition.primary_key)
