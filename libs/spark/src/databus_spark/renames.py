"""Statements that rename tables: which table has whose rows afterwards."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from databus_changes.ddl.statement import parse_statement
from databus_changes.ddl.token import UnreadableStatement
from databus_changes.tables import TableName
from databus_spark.table_changes import Statement, TableChanges

#: a table whose rows are not in the lake
UNKNOWN: TableName = ("", "")


@dataclass
class Rename:
    """A statement that renames tables."""

    transaction: int
    #: each table that it concerns → the table, by its old name, whose rows it has then, None if it has none; and the
    #: statement as its messages have it. `UNKNOWN` is a table that has no message of the statement.
    contents: dict[TableName, tuple[TableName | None, Statement]] = field(default_factory=dict)

    @property
    def tables(self) -> set[TableName]:
        """All tables that it concerns, by their old and new names."""
        return set(self.contents)


def renames(changes: Mapping[TableName, TableChanges]) -> list[Rename]:
    """Return the statements that rename tables, in order.

    Each table that was or is published has a message of the statement, under its old and under its new name.
    """
    found: dict[str, dict[TableName, Statement]] = {}
    for name, table in changes.items():
        for statement in table.statements:
            if statement.action == "alter" and "rename" in statement.query.lower():
                found.setdefault(statement.sequence, {})[name] = statement
    result = []
    for _, statements in sorted(found.items()):
        if moves := _moves(statements):
            contents: dict[TableName, TableName | None] = {}
            for old, new in moves:
                contents[new], contents[old] = contents.get(old, old), None
            first = next(iter(statements.values()))
            rename = Rename(first.transaction)
            for name, statement in statements.items():
                source = contents.get(name)
                known = source is None or source in statements
                rename.contents[name] = (source if known else UNKNOWN, statement)
            result.append(rename)
    return result


def _moves(statements: Mapping[TableName, Statement]) -> list[tuple[TableName, TableName]]:
    """Return the renames of a statement, one by one: old name, new name.

    Each message qualifies only the name of its own table. The default schema, that of the other names, is one with
    which the statement names all tables that have a message of it.
    """
    query = next(iter(statements.values())).query
    for schema in sorted({schema for schema, _ in statements}):
        try:
            parsed = parse_statement(query, schema)
        except UnreadableStatement:
            return []
        for each in (parsed, parsed.folded()):
            if statements.keys() <= _names(each.renames):
                return each.renames
    return []


def _names(moves: list[tuple[TableName, TableName]]) -> Set[TableName]:
    return {name for move in moves for name in move}
