"""DDL statements in canal's formats: their type, and the flat message.

Canal derives the type from a statement's first words and, for ALTER TABLE, from the first words of its clauses. A
statement has one message for each captured table that it changes: RENAME TABLE has one for the old and one for the new
name. (Canal itself publishes one message, for the new name or the first table.) CREATE, ALTER and DROP DATABASE are a
QUERY without a table. CREATE INDEX and DROP INDEX have none: the reader does not report them as
statements on a table.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from databus_core.events import Action
from databus_messages.formats.base import DdlStatement

_WORD = re.compile(
    r"""(?P<comment>/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*M?!\d*|\*/)"""
    r"""|(?P<quoted>`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
    r"""|[\w$]+|\S""",
    re.DOTALL,
)
_INDEXES = {"UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL"}
#: first words of ALTER TABLE clauses that control the statement's execution and change nothing
_EXECUTION_OPTIONS = {"ALGORITHM", "LOCK", "WAIT", "NOWAIT"}

_json = msgspec.json.Encoder().encode


class CanalDdl(NamedTuple):
    """A DDL statement as canal describes it."""

    type: str
    #: empty for a statement on a schema
    table: str
    sql: str


class _DdlMessage(msgspec.Struct, rename="camel", kw_only=True, gc=False):
    data: None = None
    database: str
    es: int
    gtid: str | msgspec.UnsetType
    id: int
    is_ddl: bool = True
    mysql_type: None = None
    old: None = None
    pk_names: None = None
    sql: str
    sql_type: None = None
    table: str
    ts: int
    type: str


def ddl_message(
    statement: DdlStatement, *, ts: int | None = None, number: int = 0, gtid: str | msgspec.UnsetType = msgspec.UNSET
) -> bytes:
    """Encode a statement's flat message; `number` is its `id`. `ts` is in ms; its default is the commit time.

    Raises PoisonError if the statement is not UTF-8.
    """
    ddl, es = describe(statement), statement.begin.time_us // 1000
    return _json(
        _DdlMessage(
            database=statement.table.schema,
            es=es,
            gtid=gtid,
            id=number,
            sql=ddl.sql,
            table=ddl.table,
            ts=es if ts is None else ts,
            type=ddl.type,
        )
    )


def describe(statement: DdlStatement) -> CanalDdl:
    """Classify a statement. Raises PoisonError if it is not UTF-8."""
    name, sql = statement.table.name, statement.sql
    if statement.is_on_database:
        return CanalDdl("QUERY", name, sql)
    words = list(_words(sql))
    match statement.action:
        case Action.CREATE:
            return CanalDdl("CREATE", name, sql)
        case Action.TRUNCATE:
            return CanalDdl("TRUNCATE", name, sql)
        case Action.DROP:
            return CanalDdl("ERASE", name, sql)
        case Action.ALTER:
            return CanalDdl(_alter_type(words), name, sql)
        case _:
            return CanalDdl("QUERY", name, sql)


def _words(sql: str) -> Iterator[str]:
    """Yield words in upper case, punctuation characters, and `?` for anything quoted.

    Comments are skipped; of executable comments (`/*! … */`, `/*M! … */`) only the delimiters are skipped.
    """
    for found in _WORD.finditer(sql):
        if not found["comment"]:
            yield "?" if found["quoted"] else found[0].upper()


def _alter_type(words: list[str]) -> str:
    if words[:1] == ["RENAME"]:
        return "RENAME"
    types = {_clause_type(clause) for clause in _alter_clauses(words) if clause and clause[0] not in _EXECUTION_OPTIONS}
    if "RENAME" in types:
        return "RENAME"
    return types.pop() if len(types) == 1 else "ALTER"


def _alter_clauses(words: list[str]) -> Iterator[list[str]]:
    """Yield the clauses after the table's name, which are separated by commas outside of parentheses."""
    start = words.index("TABLE") + 1 if "TABLE" in words else len(words)
    start += 2 * (words[start : start + 2] == ["IF", "EXISTS"])
    start += 3 if words[start + 1 : start + 2] == ["."] else 1
    if words[start : start + 1] == ["WAIT"]:
        start += 2
    elif words[start : start + 1] == ["NOWAIT"]:
        start += 1
    clause: list[str] = []
    depth = 0
    for word in words[start:]:
        depth += (word == "(") - (word == ")")
        if word == "," and not depth:
            yield clause
            clause = []
        else:
            clause.append(word)
    yield clause


def _clause_type(clause: list[str]) -> str:
    verb, *rest = clause
    if verb == "ADD":
        if rest[:1] == ["CONSTRAINT"]:
            rest = rest[1:] if rest[1:2] == ["UNIQUE"] else rest[2:]
        return "CINDEX" if rest and rest[0] in _INDEXES else "ALTER"
    if verb == "DROP":
        return "DINDEX" if rest and rest[0] in {"INDEX", "KEY", "CONSTRAINT"} else "ALTER"
    if verb == "RENAME":
        return "ALTER" if rest and rest[0] in {"COLUMN", "INDEX", "KEY"} else "RENAME"
    return "ALTER"
