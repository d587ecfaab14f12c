"""Finds the tables that a DML statement changes, in the text outside of parentheses (columns, values, subqueries)."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from databus_changes.ddl.reader import TokenReader
from databus_changes.ddl.token import Token
from databus_changes.tables import TableName
from databus_core.errors import CannotApply

#: what may follow the verb; QUICK, which is not reserved, only follows DELETE
_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE"}
#: what may follow the table of an INSERT, REPLACE or LOAD; "" is the end of the statement
_AFTER_TARGET = {"(", "VALUES", "VALUE", "SELECT", "SET", "TABLE", "WITH", "PARTITION"}
_AFTER_TARGET |= {"CHARACTER", "FIELDS", "COLUMNS", "LINES", "ROWS", "IGNORE", ""}
#: what separates the tables of an UPDATE or DELETE, and what ends their list
_BETWEEN_TABLES = {",", "JOIN", "STRAIGHT_JOIN"}
_AFTER_TABLES = {"SET", "WHERE", "ORDER", "LIMIT", "RETURNING", ""}
#: what may follow one of these tables; any other word is the table's alias
_AFTER_TABLE = {"INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "ON", "USING", "USE", "FORCE", "IGNORE", "FOR"}
_AFTER_TABLE |= _BETWEEN_TABLES | _AFTER_TABLES


class _Reference(NamedTuple):
    """A table that an UPDATE or DELETE names; it may read the table without changing it."""

    #: the table's alias; without an alias, its name
    name: str
    #: None: it is a subquery
    table: TableName | None


def changed_tables(tokens: Sequence[Token], schema: str) -> frozenset[TableName]:
    """Return the tables that an INSERT, REPLACE, LOAD, UPDATE or DELETE changes; for an UPDATE, all that it names.

    Empty for other statements, and if the text does not show the tables for certain. Triggers and stored functions may
    change other tables, too, and a name may be that of a view.
    """
    if any(token.keyword == ";" for token in tokens):  # another statement follows
        return frozenset()
    try:
        return frozenset(_changed(TokenReader(tokens), schema))
    except CannotApply:
        return frozenset()


def _changed(reader: TokenReader, schema: str) -> Iterable[TableName]:
    if reader.take("WITH"):
        _skip_past(reader, "AS")
        while reader.skip() and reader.take(","):
            _skip_past(reader, "AS")
    verb = reader.skip()
    if verb == "LOAD":
        _skip_past(reader, "INTO")
        reader.expect("TABLE")
    while reader.next in _MODIFIERS or (verb == "DELETE" and reader.next == "QUICK"):
        reader.skip()
    match verb:
        case "INSERT" | "REPLACE" | "LOAD":
            reader.take("INTO")
            table = reader.table_name(schema)
            _require(reader, _AFTER_TARGET)
            return [table]
        case "UPDATE":
            references = list(_references(reader, schema))
            _require(reader, {"SET"})
            return [reference.table for reference in references if reference.table]
        case "DELETE":
            return _deleted(reader, schema)
    raise reader.unexpected()


def _deleted(reader: TokenReader, schema: str) -> list[TableName]:
    """Read a DELETE: `FROM t …`, `t, u FROM t JOIN u …`, or `FROM t, u USING t JOIN u …`; t and u may be aliases."""
    begins_with_from = reader.take("FROM")
    names = list(_names(reader))
    if begins_with_from and not reader.take("USING"):
        [(qualifier, name), *others] = names
        _alias(reader)
        _require(reader, () if others else _AFTER_TABLES | {"FOR"})
        return [(qualifier or schema, name)]
    if not begins_with_from:
        reader.expect("FROM")
    references = list(_references(reader, schema))
    return [_referred(name, references, reader) for name in names]


def _names(reader: TokenReader) -> Iterator[TableName]:
    """Read `[schema.]name[.*], …`; the schema is "" if there is none."""
    while True:
        schema, name = "", reader.name()
        if not reader.take(".", "*") and reader.take("."):
            schema, name = name, reader.name()
            reader.take(".", "*")
        yield schema, name
        if not reader.take(","):
            break


def _references(reader: TokenReader, schema: str) -> Iterator[_Reference]:
    """Read `table [alias] {, | JOIN} table [alias] [ON …] …`."""
    while True:
        table = None
        if reader.take("("):
            _require(reader, {"SELECT", "WITH"})  # not: tables that are joined in parentheses
            _skip_past(reader, ")")
        else:
            table = reader.table_name(schema)
        name = _alias(reader) or (table[1] if table else "")
        _require(reader, _AFTER_TABLE)
        yield _Reference(name, table)
        while reader.next not in _BETWEEN_TABLES | _AFTER_TABLES:
            if reader.skip() in {".", "FOR"}:  # a name or the purpose of an index, even if it is JOIN or ORDER
                reader.skip()
        if reader.next in _AFTER_TABLES:
            break
        reader.skip()


def _alias(reader: TokenReader) -> str:
    """Read `[PARTITION (…)] [[AS] alias]` and return the alias; "" if there is none."""
    if reader.take("PARTITION"):
        reader.skip()
    return reader.name() if reader.take("AS") or reader.next not in _AFTER_TABLE else ""


def _referred(name: TableName, references: Iterable[_Reference], reader: TokenReader) -> TableName:
    """Return the table that a name refers to, whether or not the server folds names."""
    found = [r.table for r in references if r.name.lower() == name[1].lower() and (not name[0] or r.table == name)]
    if len(found) != 1 or found[0] is None:
        raise reader.unexpected()
    return found[0]


def _skip_past(reader: TokenReader, keyword: str) -> None:
    while not reader.take(keyword):
        reader.skip()


def _require(reader: TokenReader, keywords: Container[str]) -> None:
    """Raise CannotApply unless one of these keywords is next."""
    if reader.next not in keywords:
        raise reader.unexpected()
