"""What canal calls a DDL statement, told by its leading words and, for ALTER TABLE, by those of its items.

A statement is told once for each captured table that it names, by that table's name: RENAME TABLE for the old name and
for the new one. Canal tells it once, for the new name or the first table. CREATE INDEX and DROP INDEX, which are no
statements on tables to the reader, are not told.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from databus.events import Action
from databus_messages.formats.base import DdlStatement

_WORD = re.compile(
    r"""(?P<comment>/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*M?!\d*|\*/)"""
    r"""|(?P<quoted>`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")"""
    r"""|[\w$]+|\S""",
    re.DOTALL,
)
_INDEXES = {"UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL"}
_json = msgspec.json.Encoder().encode
#: items of ALTER TABLE that change nothing
_HOW = {"ALGORITHM", "LOCK", "WAIT", "NOWAIT"}


class Ddl(NamedTuple):
    """What canal tells of a statement."""

    type: str
    #: empty for a statement about a whole schema
    table: str
    sql: str


class _Flat(msgspec.Struct, rename="camel", kw_only=True, gc=False):
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


def flat_message(
    statement: DdlStatement, *, ts: int | None = None, number: int = 0, gtid: str | msgspec.UnsetType = msgspec.UNSET
) -> bytes:
    """Write a statement's flat message; `ts` is the commit's time if it is not given. Raises PoisonError."""
    ddl, es = describe(statement), statement.begin.time_us // 1000
    return _json(
        _Flat(
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


def describe(statement: DdlStatement) -> Ddl:
    """Classify a statement. Raises PoisonError for one that is not UTF-8."""
    name, sql = statement.table.name, statement.sql
    words = list(_words(sql))
    match statement.action:
        case Action.CREATE:
            return Ddl("CREATE", name, sql)
        case Action.TRUNCATE:
            return Ddl("TRUNCATE", name, sql)
        case Action.DROP if words[1:2] in (["DATABASE"], ["SCHEMA"]):
            return Ddl("QUERY", "", sql)
        case Action.DROP:
            return Ddl("ERASE", name, sql)
        case Action.ALTER:
            return Ddl(_alteration(words), name, sql)
        case _:
            return Ddl("QUERY", name, sql)


def _words(sql: str) -> Iterator[str]:
    """Give words and signs in upper case, `?` for what is quoted; comments are left out, but not executed ones."""
    for found in _WORD.finditer(sql):
        if not found["comment"]:
            yield "?" if found["quoted"] else found[0].upper()


def _alteration(words: list[str]) -> str:
    if words[:1] == ["RENAME"]:
        return "RENAME"
    types = {_item_type(item) for item in _items(words) if item and item[0] not in _HOW}
    if "RENAME" in types:
        return "RENAME"
    return types.pop() if len(types) == 1 else "ALTER"


def _items(words: list[str]) -> Iterator[list[str]]:
    """Cut what stands behind the table's name at the commas that are not in parentheses."""
    place = words.index("TABLE") + 1 if "TABLE" in words else len(words)
    place += 2 * (words[place : place + 2] == ["IF", "EXISTS"])
    place += 3 if words[place + 1 : place + 2] == ["."] else 1
    if words[place : place + 1] == ["WAIT"]:
        place += 2
    elif words[place : place + 1] == ["NOWAIT"]:
        place += 1
    item: list[str] = []
    depth = 0
    for word in words[place:]:
        depth += (word == "(") - (word == ")")
        if word == "," and not depth:
            yield item
            item = []
        else:
            item.append(word)
    yield item


def _item_type(item: list[str]) -> str:
    verb, *rest = item
    if verb == "ADD":
        if rest[:1] == ["CONSTRAINT"]:
            rest = rest[1:] if rest[1:2] == ["UNIQUE"] else rest[2:]
        return "CINDEX" if rest and rest[0] in _INDEXES else "ALTER"
    if verb == "DROP":
        return "DINDEX" if rest and rest[0] in {"INDEX", "KEY", "CONSTRAINT"} else "ALTER"
    if verb == "RENAME":
        return "ALTER" if rest and rest[0] in {"COLUMN", "INDEX", "KEY"} else "RENAME"
    return "ALTER"
