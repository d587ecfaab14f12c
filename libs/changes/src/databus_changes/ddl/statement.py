"""Classifies a statement in the binlog: which tables it defines, or whether it may change rows.

Tokens are enough to find names safely, because the tokenizer handles quotes, comments and white space. A full parser
would fail at a clause that it does not know.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Self

from databus_binlog.gtid import Flavor
from databus_changes.ddl.removed_columns import removed_columns
from databus_changes.ddl.token import Token
from databus_changes.ddl.unlogged import partner, removes_rows
from databus_changes.dml import changed_tables
from databus_changes.plain_dml import is_plain
from databus_changes.tables import Rename, TableName
from databus_core.events import Action

_ACTIONS = {
    "CREATE": Action.CREATE,
    "ALTER": Action.ALTER,
    "RENAME": Action.ALTER,
    "DROP": Action.DROP,
    "TRUNCATE": Action.TRUNCATE,
}
#: Verbs of statements that change no rows; `parse_statement` recognizes DDL on tables before it looks here. A statement
#: with any other verb may change rows, unless `_is_administration`.
_ROWLESS = {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"} | _ACTIONS.keys()
_ROWLESS |= {"GRANT", "REVOKE", "FLUSH", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM"}
#: words that may stand between the verb and TABLE
_MODIFIERS = {"ONLINE", "OFFLINE", "IGNORE", "OR", "REPLACE", "TEMPORARY"}
#: first words of a query in parentheses
_QUERY = {"SELECT", "TABLE", "VALUES", "WITH", "("}
#: keywords that follow ALTER DATABASE if it does not name the database; "" is the end
DATABASE_OPTIONS = {"DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "COMMENT", "ENCRYPTION", "READ", ""}


@dataclass(frozen=True)
class TableChange:
    """DDL on one table."""

    action: Action
    table: TableName
    #: the text of the statement; if it names this table, the name is qualified with the schema
    query: str


@dataclass(frozen=True)
class DatabaseChange:
    """DDL on one database, which is a schema."""

    action: Action
    schema: str
    #: whether the database's tables are dropped: by DROP, and by MariaDB's CREATE OR REPLACE
    drops_tables: bool
    #: the text of the statement
    query: str


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One classified statement. At most one of `changes`, `database` and `changes_rows` is set."""

    #: default schema: that of names without a schema
    schema: str
    tokens: Sequence[Token]
    #: its session's character_set_server, which a schema gets by default; "" if it is not known
    server_charset: str = ""
    #: its session's sql_mode, as in `databus_binlog.Query`
    sql_mode: int = 0
    #: one for each table that it creates, alters, drops or truncates, two for a rename: old name, then new name
    changes: tuple[TableChange, ...] = ()
    #: whether its text says that the tables in `changes` are temporary; such tables have no rows in the binlog
    temporary: bool = False
    #: whether it is CREATE OR REPLACE TABLE, which drops an existing table first
    replaces: bool = False
    #: whether it creates a table and fills it from a query
    has_query: bool = False
    #: the tables, by their new names, of whose rows it may have removed or replaced some without logging them
    unlogged: frozenset[TableName] = frozenset()
    #: the names, in lower case, of the columns that it drops or renames, and maybe other words
    removed_columns: frozenset[str] = frozenset()
    #: the database that it creates, alters or drops
    database: DatabaseChange | None = None
    #: whether it may change rows, of tables that it names or of others (through a routine or a trigger)
    changes_rows: bool = False
    #: the tables whose rows it changes; empty if its text does not show them for certain
    targets: frozenset[TableName] = frozenset()
    #: whether it can change other tables only through triggers, views and foreign keys of `targets`
    is_plain: bool = False
    #: the default schema, and all other schemas that it may name
    schemas: frozenset[str] = frozenset()

    def folded(self) -> Self:
        """Return the statement with the names of schemas and tables in lower case, for servers that fold names."""
        return replace(
            self,
            schema=self.schema.lower(),
            changes=tuple(replace(change, table=_lower(change.table)) for change in self.changes),
            database=self.database and replace(self.database, schema=self.database.schema.lower()),
            unlogged=frozenset(map(_lower, self.unlogged)),
            targets=frozenset(map(_lower, self.targets)),
            schemas=frozenset(schema.lower() for schema in self.schemas),
        )

    @property
    def steps(self) -> list[tuple[TableChange, ...]]:
        """The changes one by one; the two of a rename are one step."""
        size = 2 if len(self.changes) > 1 and self.changes[0].action is Action.ALTER else 1
        return [self.changes[start : start + size] for start in range(0, len(self.changes), size)]

    @property
    def renames(self) -> list[Rename]:
        """The renames, one by one."""
        return [(step[0].table, step[1].table) for step in self.steps if len(step) > 1]


def parse_statement(
    query: str, schema: str, *, server_charset: str = "", sql_mode: int = 0, flavor: Flavor = "mysql"
) -> Statement:
    """Classify a statement of a server of this flavor; the other arguments are as in `databus_binlog.Query`.

    Raises UnreadableStatement for text that cannot be split into tokens.
    """
    # Importing sqlglot takes a sixth of the reader's start-up time, so it waits for the first statement.
    from databus_changes.ddl.tokens import tokenize, unwrapped  # noqa: PLC0415

    tokens = tokenize(query, sql_mode, flavor)
    classified = partial(Statement, schema=schema, tokens=tokens, server_charset=server_charset, sql_mode=sql_mode)
    if not tokens:
        return classified()
    keywords = _keywords(tokens)
    if prefix := _prefix(keywords):
        # without the marks of a comment that may begin before the statement, or end after it
        text = unwrapped(query, sql_mode, flavor)[tokens[prefix].start :].rstrip()
        return parse_statement(text, schema, server_charset=server_charset, sql_mode=sql_mode, flavor=flavor)
    verb, index = keywords[0], 1
    while keywords[index] in _MODIFIERS:
        index += 1
    kind, replaces = keywords[index], keywords[1:3] == ["OR", "REPLACE"]
    if verb in _ACTIONS and (kind in {"TABLE", "TABLES"} or verb == "TRUNCATE"):
        index += kind in {"TABLE", "TABLES"}
        changes = tuple(_changes(_ACTIONS[verb], query, schema, _tables(verb, tokens, index)))
        return classified(
            changes=changes,
            unlogged=_unlogged(changes, tokens, schema) if verb == "ALTER" else frozenset(),
            removed_columns=removed_columns(tokens) if verb == "ALTER" else frozenset(),
            temporary="TEMPORARY" in keywords[1:index],
            replaces=replaces,
            has_query=verb == "CREATE" and _has_query(keywords[index:]),
        )
    if verb in _ACTIONS and kind in {"DATABASE", "SCHEMA"}:
        drops_tables = verb == "DROP" or replaces
        name = _database(verb, tokens, keywords, index + 1) or schema
        change = DatabaseChange(_ACTIONS[verb], name, drops_tables, query)
        return classified(database=change)
    if verb in _ROWLESS or _is_administration(keywords):
        return classified()
    return classified(
        changes_rows=True,
        targets=changed_tables(tokens, schema),
        is_plain=is_plain(tokens, sql_mode),
        schemas=frozenset({schema} | {a.text for a, b in pairwise(tokens) if b.keyword == "."}),
    )


def _lower(name: TableName) -> TableName:
    return name[0].lower(), name[1].lower()


def _keywords(tokens: Sequence[Token]) -> list[str]:
    """Return the keywords, with "" at the end."""
    return [*(token.keyword for token in tokens), ""]


def _prefix(keywords: list[str]) -> int:
    """Return the number of tokens in MariaDB's `SET STATEMENT variable = value, … FOR`, if a statement follows it."""
    depth = 0
    for index, keyword in enumerate(keywords[:-2] if keywords[:2] == ["SET", "STATEMENT"] else []):
        depth += (keyword == "(") - (keyword == ")")
        if keyword == "FOR" and not depth:
            return index + 1
    return 0


def _is_administration(keywords: list[str]) -> bool:
    """Return whether a statement is SET PASSWORD, SET DEFAULT ROLE or ANALYZE TABLE. ANALYZE UPDATE may change rows."""
    if keywords[0] == "SET":
        return keywords[1] in {"PASSWORD", "DEFAULT"}
    return keywords[0] == "ANALYZE" and bool({"TABLE", "TABLES"} & set(keywords[1:3]))


def _has_query(keywords: list[str]) -> bool:
    """Return whether CREATE TABLE, from its condition or name on, has a SELECT, TABLE or VALUES after its columns.

    A partition's VALUES are followed by IN or LESS.
    """
    start = _past_condition(keywords, 0)
    start += 3 if keywords[start + 1 : start + 2] == ["."] else 1
    if keywords[start : start + 1] == ["("] and keywords[start + 1] not in _QUERY:
        depths = accumulate((keyword == "(") - (keyword == ")") for keyword in keywords[start:])
        start += next((index for index, depth in enumerate(depths) if not depth), 0)
    keywords = keywords[start:]
    values = any(a == "VALUES" and b in {"(", "ROW"} for a, b in pairwise(keywords))
    return values or "SELECT" in keywords or "TABLE" in keywords


def _past_condition(keywords: list[str], index: int) -> int:
    """Return the index after IF [NOT] EXISTS, if that is at `index`."""
    if keywords[index] != "IF" or keywords[index + 1] not in {"NOT", "EXISTS"}:
        return index
    return index + (3 if keywords[index + 1] == "NOT" else 2)


def _database(verb: str, tokens: Sequence[Token], keywords: list[str], index: int) -> str:
    """Return the name of the database; empty for an ALTER DATABASE without a name."""
    index = _past_condition(keywords, index)
    is_unnamed = keywords[index] in (DATABASE_OPTIONS if verb == "ALTER" else {""})
    return "" if is_unnamed else tokens[index].text


def _name(tokens: Sequence[Token], index: int) -> Sequence[Token]:
    """Return the tokens of the name `a` or `db.a`; none at the end of the statement."""
    qualified = index + 2 < len(tokens) and tokens[index + 1].keyword == "."
    return [tokens[index], tokens[index + 2]] if qualified else tokens[index : index + 1]


def _tables(verb: str, tokens: Sequence[Token], index: int) -> Iterator[Sequence[Token]]:
    """Yield the name of each table that a statement creates, alters, drops, truncates or renames, as tokens."""
    keywords = _keywords(tokens)
    starts = [index]
    if verb in {"DROP", "RENAME"}:
        starts += [i + 1 for i in range(index, len(tokens)) if keywords[i] == ","]
    if verb == "RENAME":
        starts = sorted(starts + [i + 1 for i in range(index, len(tokens)) if keywords[i] == "TO"])
    if verb == "ALTER":
        for i in range(index, len(tokens)):
            if keywords[i] == "RENAME" and keywords[i + 1] not in {"COLUMN", "INDEX", "KEY"}:
                starts.append(i + 1 + (keywords[i + 1] in {"TO", "AS", "="}))
    for start in starts:
        if name := _name(tokens, _past_condition(keywords, start)):
            yield name


def _unlogged(changes: Sequence[TableChange], tokens: Sequence[Token], schema: str) -> frozenset[TableName]:
    """Return the tables of whose rows an ALTER TABLE may have removed or replaced some: its own, and its partner."""
    if not changes or not removes_rows(tokens):
        return frozenset()
    tables = {changes[-1].table}
    if other := _name(partner(tokens), 0):
        tables.add((other[0].text if len(other) > 1 else schema, other[-1].text))
    return frozenset(tables)


def _changes(action: Action, query: str, schema: str, names: Iterator[Sequence[Token]]) -> Iterator[TableChange]:
    quoted = schema.replace("`", "``")
    for *qualifier, name in names:
        if qualifier:
            yield TableChange(action, (qualifier[0].text, name.text), query)
        else:
            head, tail = query[: name.start], query[name.start :]
            yield TableChange(action, (schema, name.text), f"{head}`{quoted}`.{tail}")
