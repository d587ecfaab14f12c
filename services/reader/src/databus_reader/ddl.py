"""Which tables a statement in the binlog touches, read from its tokens.

Only statements are looked at, never the row path. Tokens are enough to find names safely (quotes, comments and white
space are the tokenizer's business), and they do not fail on a clause a full parser does not know.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from databus.errors import FatalError
from databus.events import Action

_ACTIONS = {"CREATE": Action.CREATE, "ALTER": Action.ALTER, "DROP": Action.DROP, "TRUNCATE": Action.TRUNCATE}
#: words that may stand between the verb and TABLE
_MODIFIERS = {"ONLINE", "OFFLINE", "IGNORE", "OR", "REPLACE"}
_DML = {"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"}


@dataclass(frozen=True)
class TableChange:
    """DDL on one table; `query` is the statement with this table's name qualified."""

    action: Action
    schema: str
    name: str
    query: str


def table_changes(query: str, default_schema: str) -> list[TableChange]:
    """List the tables a DDL statement creates, alters, drops, truncates or renames; empty for any other statement.

    Temporary tables are left out: their rows are never in the binlog. Raises FatalError for text that is no SQL.
    """
    words = _tokens(query)
    verb = words[0].text.upper() if words else ""
    if verb == "RENAME" and len(words) > 1 and words[1].text.upper() in {"TABLE", "TABLES"}:
        return [
            change for old in _renamed(words[2:]) for change in _changes(Action.ALTER, query, default_schema, [old])
        ]
    if verb not in _ACTIONS:
        return []
    rest = words[1:]
    while rest and rest[0].text.upper() in _MODIFIERS:
        rest = rest[1:]
    if rest and rest[0].text.upper() in {"TABLE", "TABLES"}:
        rest = rest[1:]
    elif verb != "TRUNCATE":
        return []
    names = _names(_without_condition(rest))
    return _changes(_ACTIONS[verb], query, default_schema, names if verb == "DROP" else names[:1])


def touches(query: str, default_schema: str) -> Iterator[tuple[str, str]]:
    """Give every (schema, table) that a data-changing statement may name; none for any other statement.

    Plain names come first; then keywords too, since a table may be called like one.
    """
    words = _tokens(query)
    if not words or words[0].text.upper() not in _DML:
        return
    plain = {TokenType.VAR, TokenType.IDENTIFIER}
    for place in sorted(range(1, len(words)), key=lambda place: words[place].token_type not in plain):
        if words[place].token_type not in {TokenType.STRING, TokenType.NUMBER, TokenType.DOT}:
            qualified = words[place - 1].token_type == TokenType.DOT
            yield (words[place - 2].text if qualified else default_schema), words[place].text


def _tokens(query: str) -> list[Token]:
    try:
        words = sqlglot.tokenize(query, read="mysql")
        if words and words[0].token_type == TokenType.RENAME:
            # What follows RENAME is one string to this tokenizer; another verb of the same length opens it up.
            masked = f"{query[: words[0].start]}ALTER {query[words[0].end + 1 :]}"
            words = [words[0], *sqlglot.tokenize(masked, read="mysql")[1:]]
        return words
    except TokenError as error:
        raise FatalError("a statement in the binlog cannot be read as SQL; its effect on tables is unknown") from error


def _without_condition(words: list[Token]) -> list[Token]:
    """Leave out IF [NOT] EXISTS."""
    if words and words[0].text.upper() == "IF" and words[0].token_type != TokenType.IDENTIFIER:
        return words[3:] if words[1].text.upper() == "NOT" else words[2:]
    return words


def _names(words: list[Token]) -> list[list[Token]]:
    """Read `a, db.b, …` as lists of one or two tokens."""
    names: list[list[Token]] = []
    place = 0
    while place < len(words):
        name = [words[place]]
        if place + 2 < len(words) and words[place + 1].token_type == TokenType.DOT:
            name.append(words[place + 2])
        names.append(name)
        place += 2 * len(name) - 1
        if place >= len(words) or words[place].token_type != TokenType.COMMA:
            break
        place += 1
    return names


def _renamed(words: list[Token]) -> Iterator[list[Token]]:
    """Give the old names of `a TO b, c TO d`."""
    start = 0
    for place, token in enumerate([*words, None]):
        if token is None or token.token_type == TokenType.COMMA:
            yield from _names(_without_condition(words[start:place]))[:1]
            start = place + 1


def _changes(action: Action, query: str, default_schema: str, names: list[list[Token]]) -> list[TableChange]:
    changes = []
    for name in names:
        if len(name) == 2:
            changes.append(TableChange(action, name[0].text, name[1].text, query))
        else:
            at = name[0].start
            quoted = default_schema.replace("`", "``")
            changes.append(TableChange(action, default_schema, name[0].text, f"{query[:at]}`{quoted}`.{query[at:]}"))
    return changes
