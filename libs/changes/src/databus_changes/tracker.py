"""Tracks the definitions of tables through the binlog: each row needs its table as it was when the row was logged.

If the binlog names columns, its description of a table is authoritative; the schema history or information_schema adds,
for example, display widths, AUTO_INCREMENT and secondary indexes. If the binlog does not name columns, the history is
authoritative: the tables at the pipeline's progress (`databus_core.kafka_history`), with every later statement applied
to them. In both cases, a table from the history or information_schema is used for rows only if it fits their table map.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from databus_binlog import TableMap
from databus_changes.ddl.apply import apply_ddl
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.statement import Statement
from databus_changes.matching import (
    ColumnsDiffer,
    complete_table_map,
    listed_as_logged,
    same_columns,
    with_declared_types,
)
from databus_changes.table_maps import readable, table_of
from databus_changes.tables import TableName
from databus_core.errors import CannotApply
from databus_core.events import SchemaDefinition, Table, full_name
from databus_core.kafka_history import SchemaHistory
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics

log = get_logger(__name__)

#: Reads a table from information_schema by schema and name; returns None if the table does not exist.
TableLookup = Callable[[str, str], Awaitable[Table | None]]
Definition = Table | SchemaDefinition


class TableTracker:
    """Tracks the tables of captured schemas through the binlog.

    lookup: None if there is no server to query. A table whose definition would have to be read is then not known.
    tracks: returns whether the tables of a schema are tracked.
    """

    def __init__(
        self, history: SchemaHistory, dialect: Dialect, *, lookup: TableLookup | None, tracks: Callable[[str], bool]
    ) -> None:
        self._tables = dict(history.tables)
        self._charsets = dict(history.charsets)
        self.dialect = dialect
        self._lookup = lookup
        self._tracks = tracks
        #: fingerprint of a table map → its table; a table's entries are removed when its definition is replaced
        self._by_table_map: dict[str, Table] = {}
        #: tables that are known only from a table map, and have not been looked up yet
        self._from_table_map: set[TableName] = set()
        #: table that does not fit its last table map → the difference
        self._mismatches: dict[TableName, str] = {}
        #: dropped and renamed tables under their old names, as they were before
        self._dropped: dict[TableName, Table] = {}

    # --- rows -----------------------------------------------------------------------------------------------------

    def describe(self, table_map: TableMap) -> TableMap:
        """Add the known column names to a table map that has none; remember the table of a table map that has names.

        Called by the decoder. If the table map has no names and no known table fits, the result has no names either,
        and its rows must not be used.
        """
        name = table_map.schema, table_map.name
        known = self._tables.get(name)
        if table_map.has_names:
            logged = table_of(table_map)
            if known is None or not same_columns(known, logged):
                self._keep(name, logged)
                self._from_table_map.add(name)
            return table_map
        self._mismatches.pop(name, None)
        if known is not None:
            try:
                return complete_table_map(table_map, known)
            except ColumnsDiffer as error:
                self._mismatches[name] = str(error)
        return readable(table_map)

    def present(self, tables: Mapping[str, Table]) -> dict[str, Table]:
        """Return the present definitions of tables of earlier rows, without those whose columns have changed since.

        A table that is not known, because its rows were read again, is known from now on.
        """
        found: dict[str, Table] = {}
        for key, table in tables.items():
            name = table.schema, table.name
            known = self._tables.get(name)
            if known is None and name not in self._dropped:
                known = self._keep(name, table)
            if known is not None and same_columns(known, table):
                found[key] = known
        return found

    def copy(self) -> "TableTracker":
        """Return a tracker that begins with the known tables."""
        history = SchemaHistory(self._tables, self._charsets)
        return TableTracker(history, self.dialect, lookup=self._lookup, tracks=self._tracks)

    def mismatch(self, table_map: TableMap) -> str | None:
        """Return why the known table does not fit its last table map; None if it fits, or if no table is known."""
        return self._mismatches.get((table_map.schema, table_map.name))

    def table_by_fingerprint(self, fingerprint: str) -> Table | None:
        """Return the table that `learn` returned for a table map; None if there is none, or it was replaced since."""
        return self._by_table_map.get(fingerprint)

    async def learn(self, table_map: TableMap) -> Table:
        """Return the table of a new table map that names its columns."""
        name, logged = (table_map.schema, table_map.name), table_of(table_map)
        known = self._tables.get(name)
        if name in self._from_table_map or (known is not None and known.key_assumed):
            self._from_table_map.discard(name)
            listed = await self._lookup(*name) if self._lookup else None
            if listed is not None and (fitting := listed_as_logged(listed, logged)):
                known = self._keep(name, with_declared_types(fitting, known))
        table = known if known is not None and same_columns(known, logged) else logged
        self._warn_of_gaps(table)
        self._by_table_map[table_map.fingerprint] = table
        return table

    def _warn_of_gaps(self, table: Table) -> None:
        """Warn of what neither the binlog nor the server shows of a table."""
        if table.key_assumed and self._lookup is not None:
            key = ", ".join(table.columns[index].name for index in table.primary_key)
            text = (
                f"the key ({key}) of {table.full_name} is used as its primary key, but may be a unique key: the binlog"
            )
            why = "does not show this, and information_schema does not list the table as it was in these rows"
            log.warning(LogEvent.KEY_ASSUMED, f"{text} {why}", table=table.full_name)
        if any(column.lacks_labels for column in table.columns):
            text = f"the labels of ENUM and SET columns of {table.full_name} are not known: formats that publish labels"
            log.warning(LogEvent.LABELS_MISSING, f"{text} publish the numbers instead", table=table.full_name)

    def adopt(self, listed: Table) -> Table:
        """Return a table as it is known, if it is as the database lists it; else take over what is listed."""
        name = listed.schema, listed.name
        known = self._tables.get(name)
        if known is not None and not known.key_assumed and listed_as_logged(listed, known):
            return known
        self._from_table_map.discard(name)
        return self._keep(name, with_declared_types(listed, known))

    # --- statements -----------------------------------------------------------------------------------------------

    async def apply(self, statement: Statement, tables: Iterable[TableName], *, as_written: bool) -> list[Definition]:
        """Apply a statement to the tables it names, and return the changed definitions.

        Tables that are not known are read from information_schema; so are all named tables if the statement cannot be
        applied (see `CannotApply`) or was not executed as written. information_schema may be ahead of the binlog: the
        next rows of a table show whether its definition fits.
        """
        named = [self.dialect.name(*name) for name in tables]
        if not as_written:
            return await self._look_up(named, "it failed half way, or some of its tables are temporary")
        try:
            changes = apply_ddl(statement, self._tables, self._charsets, self.dialect)
        except CannotApply as reason:
            return await self._look_up(named, str(reason))
        missing = [name for name in named if name not in self._tables and name not in changes.tables]
        changed = await self._look_up(missing)
        for schema, charset in changes.charsets.items():
            if self._tracks(schema):
                changed.append(SchemaDefinition(schema, charset))
                self._keep_charset(schema, charset)
        return changed + [self._keep(name, table) for name, table in changes.tables.items() if self._tracks(name[0])]

    async def _look_up(self, names: Iterable[TableName], reason: str = "") -> list[Definition]:
        """Read tables from information_schema, and return their definitions. Log the reason for each known table."""
        changed: list[Definition] = []
        for name in dict.fromkeys(names):
            if not self._tracks(name[0]):
                continue
            if self._lookup is None:
                self._forget(name)
                continue
            if name in self._tables:
                table = full_name(*name)
                text = f"reading {table} from information_schema, because a statement on it cannot be applied: {reason}"
                log.warning(LogEvent.TABLE_READ_AGAIN, text, table=table)
            metrics.TABLES_READ_AGAIN.inc()
            listed = await self._lookup(*name)
            changed.append(self._keep(name, listed and with_declared_types(listed, self._tables.get(name))))
        return changed

    def existing(self, name: TableName) -> Table | None:
        """Return a table; None if it is not known, or was dropped or renamed."""
        return self._tables.get(self.dialect.name(*name))

    def last_known(self, name: TableName) -> Table | None:
        """Return a table as it is, or as it was before it was dropped or renamed.

        For a table that is not known, returns one without columns, or None if there is no server to query.
        """
        key = self.dialect.name(*name)
        table = self._tables.get(key) or self._dropped.get(key)
        if table is None and self._lookup is not None:
            return Table(schema=name[0], name=name[1], columns=())
        return table

    def tables_in(self, schema: str) -> list[TableName]:
        """List the known tables of a schema."""
        return [name for name in self._tables if name[0] == schema]

    def charset(self, schema: str) -> str | None:
        """Return the default character set of a schema; None if the schema or its character set is not known."""
        return self._charsets.get(schema)

    def forget_tables(self) -> None:
        """Forget all tables: a statement that cannot be read may have changed any of them."""
        for name in list(self._tables):
            self._forget(name)

    def _keep(self, name: TableName, table: Table | None) -> Table:
        """Store a table (None: it was dropped or renamed); return its definition to publish."""
        old = self._remove(name)
        if table is None:
            if old:
                self._dropped[name] = old
            return Table(schema=name[0], name=name[1], columns=())
        self._tables[name] = table
        return table

    def _forget(self, name: TableName) -> None:
        self._remove(name)
        self._dropped.pop(name, None)

    def _remove(self, name: TableName) -> Table | None:
        self._by_table_map = {m: t for m, t in self._by_table_map.items() if (t.schema, t.name) != name}
        self._from_table_map.discard(name)
        return self._tables.pop(name, None)

    def _keep_charset(self, schema: str, charset: str | None) -> None:
        self._charsets.pop(schema, None)
        if charset is not None:
            self._charsets[schema] = charset
