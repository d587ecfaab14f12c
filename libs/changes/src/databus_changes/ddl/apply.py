"""Apply DDL to the tables that are known: what they are after a statement, told by its text alone.

The grammar here covers what changes columns, character sets and keys, word by word over sqlglot's tokens; any other
word raises CannotApply. sqlglot's own parser is no help: it knows no `ADD (a INT, b INT)`, `RENAME TABLE`, `ZEROFILL`,
`NATIONAL CHAR` and others, and hands such statements back as text or refuses them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from databus.errors import CannotApply
from databus.events import Table
from databus_changes.catalog import charset_of
from databus_changes.ddl.alteration import Alteration
from databus_changes.ddl.columns import read_charset, read_collation
from databus_changes.ddl.creation import create_table
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.draft import Draft
from databus_changes.ddl.statement import Name
from databus_changes.ddl.words import Words


@dataclass
class Outcome:
    """What is another than before; None: gone."""

    tables: dict[Name, Table | None] = field(default_factory=dict)
    #: default character sets of schemas
    charsets: dict[str, str | None] = field(default_factory=dict)


def apply(
    query: str, default_schema: str, tables: Mapping[Name, Table], charsets: Mapping[str, str], dialect: Dialect
) -> Outcome:
    """Tell what a statement makes of tables and schemas; nothing, if it is no DDL of these.

    Raises CannotApply where the text does not tell it, or what it starts from is not known.
    """
    statement = _Statement(query, default_schema, tables, charsets, dialect)
    statement.apply()
    return statement.outcome


class _Statement:
    def __init__(
        self, query: str, schema: str, tables: Mapping[Name, Table], charsets: Mapping[str, str], dialect: Dialect
    ) -> None:
        self._words = Words(query)
        self._schema = schema
        self._known = tables
        self._charsets = charsets
        self._dialect = dialect
        self.outcome = Outcome()

    def apply(self) -> None:
        words = self._words
        if words.take("CREATE"):
            self._create()
        elif words.take("ALTER"):
            self._alter()
        elif words.take("DROP"):
            self._drop()
        elif words.take("RENAME") and (words.take("TABLE") or words.take("TABLES")):
            self._rename()

    # --- what is known --------------------------------------------------------------------------------------------

    def _name(self) -> Name:
        return self._dialect.name(*self._words.qualified(self._schema))

    def _find(self, name: Name) -> Table | None:
        return self.outcome.tables[name] if name in self.outcome.tables else self._known.get(name)

    def _table(self, name: Name) -> Table:
        table = self._find(name)
        if table is None:
            raise CannotApply("the table it starts from is not known")
        return table

    def _move(self, old: Name, new: Name, table: Table) -> None:
        self.outcome.tables[old] = None
        self.outcome.tables[new] = msgspec.structs.replace(table, schema=new[0], name=new[1])

    # --- statements -----------------------------------------------------------------------------------------------

    def _create(self) -> None:
        words = self._words
        replaces = words.take("OR", "REPLACE")
        if words.take("DATABASE") or words.take("SCHEMA"):
            exists = words.take("IF", "NOT", "EXISTS")
            name = words.name()
            if not (exists and name in self._charsets):
                self.outcome.charsets[name] = self._schema_option() or self._dialect.charset
        elif words.take("TABLE"):
            self._create_table(replaces=replaces)
        else:
            self._create_index()

    def _create_table(self, *, replaces: bool) -> None:
        words = self._words
        exists = words.take("IF", "NOT", "EXISTS") and not replaces
        name = self._name()
        if exists and self._find(name):
            return
        nested = words.take("(", "LIKE")
        if nested or words.take("LIKE"):
            model = self._table(self._name())
            if nested:
                words.expect(")")
            if words.next:
                raise words.refusal()
            self.outcome.tables[name] = msgspec.structs.replace(model, schema=name[0], name=name[1])
        else:
            draft = create_table(words, self._charsets.get(name[0], ""), self._dialect)
            self.outcome.tables[name] = draft.table(*name)

    def _create_index(self) -> None:
        words = self._words
        _ = words.take("UNIQUE") or words.take("FULLTEXT") or words.take("SPATIAL")
        if not words.take("INDEX"):
            return
        words.take("IF", "NOT", "EXISTS")
        index = words.name()
        if words.take("USING"):
            words.skip()
        words.expect("ON")
        name = self._name()
        draft = self._draft(name)
        if not draft.has_index(index):
            draft.add_index(index, words.names())
        self.outcome.tables[name] = draft.table(*name)

    def _draft(self, name: Name) -> Draft:
        table = self._table(name)
        return Draft(self._dialect, table.charset, table)

    def _alter(self) -> None:
        words = self._words
        if words.take("DATABASE") or words.take("SCHEMA"):
            named = words.next not in {"DEFAULT", "CHARACTER", "CHARSET", "COLLATE"}
            schema = words.name() if named else self._schema
            if charset := self._schema_option():
                self.outcome.charsets[schema] = charset
            return
        while words.take("ONLINE") or words.take("OFFLINE") or words.take("IGNORE"):
            pass
        if not words.take("TABLE"):
            return
        exists = words.take("IF", "EXISTS")
        name = self._name()
        if exists and self._find(name) is None:
            return
        draft = self._draft(name)
        alteration = Alteration(words, draft, self._schema, self._charsets.get(name[0], ""))
        alteration.apply()
        table = draft.table(*name)
        if alteration.new_name:
            self._move(name, self._dialect.name(*alteration.new_name), table)
        else:
            self.outcome.tables[name] = table

    def _drop(self) -> None:
        words = self._words
        if words.take("DATABASE") or words.take("SCHEMA"):
            words.take("IF", "EXISTS")
            schema = words.name()
            self.outcome.charsets[schema] = None
            self.outcome.tables.update({name: None for name in self._known if name[0] == schema})
        elif words.take("TABLE") or words.take("TABLES"):
            words.take("IF", "EXISTS")
            while True:
                self.outcome.tables[self._name()] = None
                if not words.take(","):
                    break
        elif words.take("INDEX"):
            words.take("IF", "EXISTS")
            index = words.name()
            words.expect("ON")
            name = self._name()
            draft = self._draft(name)
            draft.drop_index(index)
            self.outcome.tables[name] = draft.table(*name)

    def _rename(self) -> None:
        words = self._words
        words.take("IF", "EXISTS")
        while True:
            old = self._name()
            if words.take("WAIT"):
                words.number()
            words.take("NOWAIT")
            words.expect("TO")
            self._move(old, self._name(), self._table(old))
            if not words.take(","):
                break
        if words.next:
            raise words.refusal()

    def _schema_option(self) -> str:
        """Read the character set of a schema; "" without one."""
        words, charset, collation = self._words, "", ""
        while words.next:
            if named := read_charset(words):
                charset = self._dialect.charset if named == "default" else named
            elif named := read_collation(words):
                collation = named
            else:
                words.skip()
        return charset or charset_of(collation)
