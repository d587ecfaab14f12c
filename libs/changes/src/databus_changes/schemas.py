"""The table behind a row, at every place of the binlog.

Where the binlog names columns it is the truth, and what it does not say (display widths, AUTO_INCREMENT, secondary
indexes) is decoration from the history or information_schema. Where it does not name them, the history is the truth:
the tables at the progress (`databus.kafka_history`), and every statement since applied to them. Either way a table is
used only if the binlog's own description of its columns fits it.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable

from databus import metrics
from databus.errors import CannotApply, SchemaMismatch
from databus.events import SchemaDefinition, Table
from databus.kafka_history import SchemaHistory
from databus_binlog import TableMap
from databus_changes.ddl.apply import apply
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.statement import Name
from databus_changes.declared import described_by
from databus_changes.fitting import completed, same_columns

log = logging.getLogger("databus.reader")

Lookup = Callable[[str, str], Awaitable[Table | None]]
Definition = Table | SchemaDefinition


class Schemas:
    """Tables of the schemas that `follows` names, where the decoder stands."""

    def __init__(
        self, history: SchemaHistory, dialect: Dialect, *, lookup: Lookup, follows: Callable[[str], bool]
    ) -> None:
        self._tables = dict(history.tables)
        self._charsets = dict(history.charsets)
        self._dialect = dialect
        self._lookup = lookup
        self._follows = follows
        self._by_map: dict[str, Table] = {}
        #: tables of which no more is known than the binlog told
        self._bare: set[Name] = set()
        #: the last description of tables that are gone
        self._gone: dict[Name, Table] = {}

    # --- rows -----------------------------------------------------------------------------------------------------

    def describe(self, table_map: TableMap) -> TableMap:
        """Complete a table map that names no columns, for the decoder; learn from one that does.

        Raises SchemaMismatch where the table is not known, or the two do not fit.
        """
        name = table_map.schema, table_map.name
        known = self._tables.get(name)
        if not table_map.has_names:
            if known is None:
                raise SchemaMismatch(
                    f"the binlog does not name the columns of {table_map.schema}.{table_map.name}, and the table is "
                    "not known: set binlog_row_metadata=FULL on the server (also for sessions that changed it)"
                )
            return completed(known, table_map)
        logged = described_by(table_map)
        if known is None or not same_columns(known, logged):
            self._keep(name, logged)
            self._bare.add(name)
        return table_map

    def known(self, fingerprint: str) -> Table | None:
        """Give the table of the table map with this fingerprint, if it was seen since its last DDL."""
        return self._by_map.get(fingerprint)

    async def learn(self, table_map: TableMap) -> Table:
        """Make the table of a table map that is new."""
        name, logged = (table_map.schema, table_map.name), described_by(table_map)
        if name in self._bare:
            self._bare.discard(name)
            listed = await self._lookup(*name)
            if listed is not None and same_columns(listed, logged):
                self._keep(name, listed)
        known = self._tables.get(name)
        table = known if known is not None and same_columns(known, logged) else logged
        self._by_map[table_map.fingerprint] = table
        return table

    # --- statements -----------------------------------------------------------------------------------------------

    async def follow(self, query: str, schema: str, tables: Iterable[Name], *, whole: bool) -> list[Definition]:
        """Apply a statement to the tables it names, and give what is another than before.

        Where its text does not tell, or not the `whole` statement counts, the tables are read from information_schema,
        which may be ahead of the binlog: rows decide whether they fit.
        """
        named = [self._dialect.name(*name) for name in tables]
        if not whole:
            return await self._read_again(named, "it was not executed as it is written")
        try:
            outcome = apply(query, schema, self._tables, self._charsets, self._dialect)
        except CannotApply as reason:
            return await self._read_again(named, str(reason))
        missing = [name for name in named if name not in self._tables and name not in outcome.tables]
        changed = await self._read_again(missing, "the table is not known")
        for name, charset in outcome.charsets.items():
            if self._follows(name):
                changed.append(SchemaDefinition(name, charset))
                self._keep_charset(name, charset)
        return changed + [self._keep(name, table) for name, table in outcome.tables.items() if self._follows(name[0])]

    async def _read_again(self, names: Iterable[Name], reason: str) -> list[Definition]:
        changed: list[Definition] = []
        for name in dict.fromkeys(names):
            if self._follows(name[0]):
                if name in self._tables:
                    log.warning("the text of a statement on %s.%s does not tell its outcome: %s", *name, reason)
                metrics.TABLES_READ_AGAIN.inc()
                changed.append(self._keep(name, await self._lookup(*name)))
        return changed

    def table(self, schema: str, name: str) -> Table:
        """Give a table as it is now; one that is gone as it was known last, or without columns."""
        key = self._dialect.name(schema, name)
        return self._tables.get(key) or self._gone.get(key) or Table(schema=schema, name=name, columns=())

    def existing(self, schema: str, name: str) -> Table | None:
        """Give a table that is known and not gone."""
        return self._tables.get(self._dialect.name(schema, name))

    def tables_of(self, schema: str) -> list[str]:
        """List the tables of a schema that are known."""
        return [name for its_schema, name in self._tables if its_schema == schema]

    def _keep(self, name: Name, table: Table | None) -> Table:
        """Take note of a table, or that it is gone; give what tells others so."""
        self._by_map = {m: t for m, t in self._by_map.items() if (t.schema, t.name) != name}
        self._bare.discard(name)
        old = self._tables.pop(name, None)
        if table is None:
            if old:
                self._gone[name] = old
            return Table(schema=name[0], name=name[1], columns=())
        self._tables[name] = table
        return table

    def _keep_charset(self, schema: str, charset: str | None) -> None:
        self._charsets.pop(schema, None)
        if charset is not None:
            self._charsets[schema] = charset
