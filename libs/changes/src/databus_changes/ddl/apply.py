"""Apply DDL to the known tables: derive, from a statement's text and the tables before it, the tables after it.

The grammar covers, word by word, what changes columns, character sets and keys; an unknown word there raises
CannotApply. Clauses that change none of these, such as table options and partitions, are skipped.
sqlglot's own parser cannot do this: it does not know `ADD (a INT, b INT)`, `RENAME TABLE`, `ZEROFILL`, `NATIONAL CHAR`
and others, and returns such statements as text or refuses them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from databus_changes.charsets import charset_name
from databus_changes.ddl.alter_table import alter_table
from databus_changes.ddl.charset_clause import CharsetClause
from databus_changes.ddl.create_table import create_table
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.draft import TableDraft
from databus_changes.ddl.reader import TokenReader
from databus_changes.ddl.statement import DATABASE_OPTIONS, Statement
from databus_changes.tables import TableName
from databus_core.errors import CannotApply
from databus_core.events import Table, full_name

#: bit of sql_mode → types that it turns into others: REAL_AS_FLOAT, MariaDB's ORACLE, and MAXDB
_REDEFINED_TYPES = {1 << 0: {"REAL"}, 1 << 9: {"DATE", "BLOB"}, 1 << 12: {"TIMESTAMP"}}


@dataclass
class SchemaChanges:
    """What a statement changes."""

    #: table as it is after the statement; None: dropped or renamed
    tables: dict[TableName, Table | None] = field(default_factory=dict)
    #: schema → default character set; None: dropped
    charsets: dict[str, str | None] = field(default_factory=dict)


def apply_ddl(
    statement: Statement, tables: Mapping[TableName, Table], charsets: Mapping[str, str], dialect: Dialect
) -> SchemaChanges:
    """Return the tables and schemas that a statement changes; none if it is not DDL on tables or schemas.

    Raises CannotApply if its text is not understood, if a table or character set that it needs is not known, or if a
    table does not fit the statement.
    """
    grammar = _Grammar(statement, tables, charsets, dialect)
    grammar.read()
    return grammar.changes


class _Grammar:
    """Reads one statement and applies it. Each part of the statement sees the changes of the parts before it."""

    def __init__(
        self, statement: Statement, tables: Mapping[TableName, Table], charsets: Mapping[str, str], dialect: Dialect
    ) -> None:
        self._statement = statement
        self._tokens = TokenReader(statement.tokens)
        self._schema = dialect.schema(statement.schema)
        self._known = tables
        self._charsets = charsets
        # The character set of a new schema is the session's, which may differ from the server's.
        charset = charset_name(statement.server_charset) or dialect.charset
        self._dialect = replace(dialect, charset=charset)
        self.changes = SchemaChanges()

    def read(self) -> None:
        """Read the statement."""
        tokens = self._tokens
        if tokens.take("CREATE"):
            self._create()
        elif tokens.take("ALTER"):
            self._alter()
        elif tokens.take("DROP"):
            self._drop()
        elif tokens.take("RENAME") and (tokens.take("TABLE") or tokens.take("TABLES")):
            self._rename()

    def _name(self) -> TableName:
        return self._dialect.name(*self._tokens.table_name(self._schema))

    def _find(self, name: TableName) -> Table | None:
        return self.changes.tables[name] if name in self.changes.tables else self._known.get(name)

    def _table(self, name: TableName) -> Table:
        table = self._find(name)
        if table is None:
            raise CannotApply(f"it needs the definition of {full_name(*name)}, which is not known")
        return table

    def _require_plain_types(self) -> None:
        words = {token.keyword for token in self._statement.tokens}
        for mode, types in _REDEFINED_TYPES.items():
            if self._statement.sql_mode & mode and (redefined := words & types):
                raise CannotApply(f"its session's sql_mode redefines {', '.join(sorted(redefined))}")

    def _draft(self, name: TableName) -> TableDraft:
        table = self._table(name)
        return TableDraft(self._dialect, table.charset, table)

    def _keep(self, name: TableName, draft: TableDraft) -> None:
        self.changes.tables[name] = draft.table(*name)

    def _move(self, old: TableName, new: TableName, table: Table) -> None:
        self.changes.tables[old] = None
        self.changes.tables[new] = _named(table, new)

    # --- statements -----------------------------------------------------------------------------------------------

    def _create(self) -> None:
        tokens = self._tokens
        replaces = tokens.take("OR", "REPLACE")
        if tokens.take("DATABASE") or tokens.take("SCHEMA"):
            if_not_exists = tokens.take("IF", "NOT", "EXISTS")
            name = self._dialect.schema(tokens.name())
            if replaces:
                self._drop_tables(name)
            if not (if_not_exists and name in self._charsets):
                self.changes.charsets[name] = self._schema_charset() or self._dialect.charset
        elif tokens.take("TABLE"):
            self._require_plain_types()
            self._create_table(replaces=replaces)
        else:
            self._create_index(replaces=replaces)

    def _create_table(self, *, replaces: bool) -> None:
        tokens = self._tokens
        if_not_exists = tokens.take("IF", "NOT", "EXISTS") and not replaces
        name = self._name()
        if if_not_exists and self._find(name):
            return
        nested = tokens.take("(", "LIKE")
        if nested or tokens.take("LIKE"):
            model = self._table(self._name())
            if nested:
                tokens.expect(")")
            if tokens.next:
                raise tokens.unexpected()
            self.changes.tables[name] = _named(model, name)
        else:
            self._keep(name, create_table(tokens, self._charsets.get(name[0], ""), self._dialect))

    def _create_index(self, *, replaces: bool) -> None:
        tokens = self._tokens
        unique = tokens.take("UNIQUE")
        _ = tokens.take("FULLTEXT") or tokens.take("SPATIAL") or tokens.take("VECTOR")
        if not tokens.take("INDEX"):
            return
        tokens.take("IF", "NOT", "EXISTS")
        index = tokens.name()
        if tokens.take("USING"):
            tokens.skip()
        tokens.expect("ON")
        name = self._name()
        draft = self._draft(name)
        if replaces:
            draft.drop_index(index)
        columns, has_prefix = tokens.key_columns()
        draft.add_key(index, columns, unique=unique and not has_prefix, if_not_exists=True)
        self._keep(name, draft)

    def _alter(self) -> None:
        tokens = self._tokens
        if tokens.take("DATABASE") or tokens.take("SCHEMA"):
            schema = self._schema if tokens.next in DATABASE_OPTIONS else self._dialect.schema(tokens.name())
            if charset := self._schema_charset():
                self.changes.charsets[schema] = charset
            return
        while tokens.take("ONLINE") or tokens.take("OFFLINE") or tokens.take("IGNORE"):
            pass
        if tokens.take("TABLE"):
            self._require_plain_types()
            self._alter_table()

    def _alter_table(self) -> None:
        if_exists = self._tokens.take("IF", "EXISTS")
        name = self._name()
        if if_exists and self._find(name) is None:
            return
        draft = self._draft(name)
        new_name = alter_table(self._tokens, draft, self._schema, self._charsets.get(name[0], ""))
        if new_name:
            self._move(name, self._dialect.name(*new_name), draft.table(*name))
        else:
            self._keep(name, draft)

    def _drop(self) -> None:
        tokens = self._tokens
        if tokens.take("DATABASE") or tokens.take("SCHEMA"):
            tokens.take("IF", "EXISTS")
            schema = self._dialect.schema(tokens.name())
            self.changes.charsets[schema] = None
            self._drop_tables(schema)
        elif tokens.take("TABLE") or tokens.take("TABLES"):
            tokens.take("IF", "EXISTS")
            while True:
                self.changes.tables[self._name()] = None
                if not tokens.take(","):
                    break
        elif tokens.take("INDEX"):
            tokens.take("IF", "EXISTS")
            index = tokens.name()
            tokens.expect("ON")
            name = self._name()
            draft = self._draft(name)
            draft.drop_index(index)
            self._keep(name, draft)

    def _drop_tables(self, schema: str) -> None:
        self.changes.tables.update({name: None for name in self._known if name[0] == schema})

    def _rename(self) -> None:
        tokens = self._tokens
        tokens.take("IF", "EXISTS")
        while True:
            old = self._name()
            if tokens.take("WAIT"):
                tokens.number()
            tokens.take("NOWAIT")
            tokens.expect("TO")
            self._move(old, self._name(), self._table(old))
            if not tokens.take(","):
                break
        if tokens.next:
            raise tokens.unexpected()

    def _schema_charset(self) -> str:
        """Read the options of a schema; return its character set, "" if the options do not give one."""
        clause = CharsetClause()
        while self._tokens.next:
            if not clause.take(self._tokens):
                self._tokens.skip()
        return clause.charset(self._dialect.charset)


def _named(table: Table, name: TableName) -> Table:
    return msgspec.structs.replace(table, schema=name[0], name=name[1])
