"""What a statement of the binlog does to tables, read from its tokens.

Only statements are looked at, never the row path. Tokens are enough to find names safely (quotes, comments and white
space are the tokenizer's business), and they do not fail on a clause a full parser does not know.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.tokens import Token, TokenType

from databus.events import Action
from databus_changes.ddl.tokens import keyword, tokenize

_ACTIONS = {
    "CREATE": Action.CREATE,
    "ALTER": Action.ALTER,
    "RENAME": Action.ALTER,
    "DROP": Action.DROP,
    "TRUNCATE": Action.TRUNCATE,
}
#: verbs that change no row of a table, or do so by an action above; a verb that is not here may change any row
_ROWLESS = {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"} | _ACTIONS.keys()
_ROWLESS |= {"GRANT", "REVOKE", "FLUSH", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM"}
#: words that may stand between the verb and TABLE
_MODIFIERS = {"ONLINE", "OFFLINE", "IGNORE", "OR", "REPLACE", "TEMPORARY"}
#: words that may stand between INSERT, REPLACE, UPDATE or DELETE and the table
_DML_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO", "FROM"}
#: what follows the table of an UPDATE or DELETE of one table
_AFTER_TARGET = {"UPDATE": {"SET"}, "DELETE": {"WHERE", "ORDER", "LIMIT", ""}}

Name = tuple[str, str]


@dataclass(frozen=True)
class TableChange:
    """DDL on one table; `query` is the statement with this table's name qualified."""

    action: Action
    schema: str
    name: str
    query: str

    @property
    def table(self) -> Name:
        """Schema and name."""
        return self.schema, self.name


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What one statement does."""

    #: tables it creates, alters, drops, truncates or renames: old and new name by turns
    changes: tuple[TableChange, ...] = ()
    #: those tables are temporary: their rows are never in the binlog
    temporary: bool = False
    #: it fills the table it creates, from a query
    fills: bool = False
    #: schema it drops, with all tables
    dropped_schema: str | None = None
    #: it may change rows, of tables it names or of others (by a routine or a trigger)
    changes_rows: bool = False
    #: the one table it changes rows of, where that is plain
    target: Name | None = None
    #: the default schema and all others it may name
    schemas: frozenset[str] = frozenset()

    @property
    def steps(self) -> list[tuple[TableChange, ...]]:
        """The changes one by one, the two of a rename together."""
        size = 2 if len(self.changes) > 1 and self.changes[0].action is Action.ALTER else 1
        return [self.changes[at : at + size] for at in range(0, len(self.changes), size)]


def read(query: str, default_schema: str) -> Statement:
    """Tell what a statement does. Raises sqlglot's TokenError for text that cannot be split into tokens."""
    words = tokenize(query)
    if not words:
        return Statement()
    keywords = [*map(keyword, words), ""]
    verb, place = keywords[0], 1
    while keywords[place] in _MODIFIERS:
        place += 1
    kind = keywords[place]
    if verb in _ACTIONS and (kind in {"TABLE", "TABLES"} or verb == "TRUNCATE"):
        place += kind in {"TABLE", "TABLES"}
        return Statement(
            changes=tuple(_changes(_ACTIONS[verb], query, default_schema, _tables(verb, words, place))),
            temporary="TEMPORARY" in keywords[1:place],
            fills=verb == "CREATE" and _has_source(keywords[place:]),
        )
    if verb == "DROP" and kind in {"DATABASE", "SCHEMA"}:
        name = words[_past_condition(keywords, place + 1) :][:1]
        return Statement(dropped_schema=name[0].text if name else None)
    if verb in _ROWLESS or _is_administration(keywords):
        return Statement()
    return Statement(
        changes_rows=True,
        target=_target(words, keywords, default_schema),
        schemas=frozenset({default_schema} | {a.text for a, b in pairwise(words) if _is_dot(b)}),
    )


def _is_dot(token: Token) -> bool:
    return token.token_type == TokenType.DOT


def _is_administration(keywords: list[str]) -> bool:
    """Tell SET PASSWORD and ANALYZE TABLE from SET STATEMENT … FOR and MariaDB's ANALYZE UPDATE."""
    if keywords[0] == "SET":
        return keywords[1] in {"PASSWORD", "DEFAULT"}
    return keywords[0] == "ANALYZE" and bool({"TABLE", "TABLES"} & set(keywords[1:3]))


def _has_source(keywords: list[str]) -> bool:
    """Say whether CREATE TABLE has a SELECT, TABLE or VALUES; a partition's VALUES are followed by IN or LESS."""
    values = any(a == "VALUES" and b in {"(", "ROW"} for a, b in pairwise(keywords))
    return values or "SELECT" in keywords or "TABLE" in keywords


def _past_condition(keywords: list[str], place: int) -> int:
    """Step over IF [NOT] EXISTS."""
    if keywords[place] != "IF" or keywords[place + 1] not in {"NOT", "EXISTS"}:
        return place
    return place + (3 if keywords[place + 1] == "NOT" else 2)


def _name(words: list[Token], place: int) -> list[Token]:
    """Read `a` or `db.a`; nothing at the end of the statement."""
    qualified = place + 2 < len(words) and _is_dot(words[place + 1])
    return [words[place], words[place + 2]] if qualified else words[place : place + 1]


def _tables(verb: str, words: list[Token], place: int) -> Iterator[list[Token]]:
    """Give the names of the tables that a statement creates, alters, drops, truncates or renames."""
    keywords = [*map(keyword, words), ""]
    starts = [place]
    if verb in {"DROP", "RENAME"}:
        starts += [at + 1 for at in range(place, len(words)) if keywords[at] == ","]
    if verb == "RENAME":
        starts = sorted(starts + [at + 1 for at in range(place, len(words)) if keywords[at] == "TO"])
    if verb == "ALTER":
        for at in range(place, len(words)):
            if keywords[at] == "RENAME" and keywords[at + 1] not in {"COLUMN", "INDEX", "KEY"}:
                starts.append(at + 1 + (keywords[at + 1] in {"TO", "AS", "="}))
    for start in starts:
        if name := _name(words, _past_condition(keywords, start)):
            yield name


def _changes(action: Action, query: str, default_schema: str, names: Iterator[list[Token]]) -> Iterator[TableChange]:
    quoted = default_schema.replace("`", "``")
    for *schema, name in names:
        if schema:
            yield TableChange(action, schema[0].text, name.text, query)
        else:
            at = name.start
            yield TableChange(action, default_schema, name.text, f"{query[:at]}`{quoted}`.{query[at:]}")


def _target(words: list[Token], keywords: list[str], default_schema: str) -> Name | None:
    """Give the table that an INSERT, REPLACE, UPDATE or DELETE of one table changes."""
    if keywords[0] not in {"INSERT", "REPLACE", "UPDATE", "DELETE"}:
        return None
    place = 1
    while keywords[place] in _DML_MODIFIERS:
        place += 1
    name = _name(words, place)
    after = keywords[place + 2 * len(name) - 1] if name else ""
    if not name or after not in _AFTER_TARGET.get(keywords[0], {after}):
        return None
    return (name[0].text if len(name) == 2 else default_schema), name[-1].text
