"""Foreign keys whose actions change rows of other tables without logging them.

InnoDB itself executes ON DELETE and ON UPDATE CASCADE, SET NULL and SET DEFAULT: the binlog of MariaDB, and of MySQL
before 9.6, has only the row of the parent. Later releases of MySQL log the rows of the children, too, unless
innodb_native_foreign_keys is ON.

The definitions are read with SHOW CREATE TABLE: MariaDB does not show information_schema.referential_constraints
to an account that has only SELECT.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from databus_binlog.errors import MissingPrivilege, ServerRefused
from databus_changes.catalog import Queries
from databus_changes.ddl.reader import TokenReader
from databus_changes.tables import CapturedTables, TableName
from databus_core.events import first_names, full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger

log = get_logger(__name__)

_CHILDREN = """
SELECT DISTINCT table_schema, table_name FROM information_schema.key_column_usage
WHERE referenced_table_name IS NOT NULL ORDER BY 1, 2"""
_LOGS_CHILDREN = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"
#: the beginning of a foreign key's line; sql_mode and sql_quote_show_create decide how names are quoted
_FOREIGN_KEY = re.compile(r"""\s*CONSTRAINT (?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|\S+) FOREIGN KEY \(""")


@dataclass(frozen=True, kw_only=True)
class ForeignKey:
    """A foreign key, and what it does to rows of the child when rows of the parent change."""

    child: TableName
    parent: TableName
    #: in lower case
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]
    #: CASCADE, SET (NULL or DEFAULT), or "" if the rows of the child do not change
    on_delete: str
    on_update: str


class Cascades:
    """The foreign keys of a server that change rows of children."""

    def __init__(self, keys: Iterable[ForeignKey]) -> None:
        self._keys = list(dict.fromkeys(key for key in keys if key.on_delete or key.on_update))

    def union(self, other: "Cascades") -> "Cascades":
        """Return the foreign keys of both."""
        return Cascades(self._keys + other._keys)

    def children(self) -> dict[TableName, set[TableName]]:
        """Return the tables whose rows may change, each with its parents."""
        found: dict[TableName, set[TableName]] = {}
        for key in self._keys:
            found.setdefault(key.child, set()).add(key.parent)
        return found

    def deleted(self, table: TableName) -> frozenset[TableName]:
        """Return the tables whose rows may change when rows of a table are deleted, children of children included."""
        return self._changed(table, None)

    def updated(self, table: TableName) -> frozenset[TableName]:
        """Return the tables whose rows may change when columns that foreign keys refer to are updated in a table."""
        return self._changed(table, self.columns(table))

    def columns(self, table: TableName) -> frozenset[str]:
        """Return the columns, in lower case, whose update in a table changes rows of others."""
        keys = (key for key in self._keys if key.parent == table and key.on_update)
        return frozenset(column for key in keys for column in key.parent_columns)

    def _changed(self, table: TableName, columns: frozenset[str] | None) -> frozenset[TableName]:
        """Follow a delete (`columns` is None), or an update of these columns."""
        found: set[TableName] = set()
        pending, seen = [(table, columns)], {(table, columns)}
        while pending:
            parent, columns = pending.pop()
            for key in self._keys:
                if key.parent != parent or (columns is not None and columns.isdisjoint(key.parent_columns)):
                    continue
                action = key.on_delete if columns is None else key.on_update
                if not action:
                    continue
                found.add(key.child)
                deletes = columns is None and action == "CASCADE"
                effect = key.child, None if deletes else frozenset(key.columns)
                if effect not in seen:
                    seen.add(effect)
                    pending.append(effect)
        return frozenset(found)


async def read_cascades(session: Queries) -> Cascades:
    """Read the foreign keys of all tables that the account sees."""
    keys: list[ForeignKey] = []
    for schema, name in await session.query(_CHILDREN):
        child = str(schema), str(name)
        quoted = ".".join("`" + part.replace("`", "``") + "`" for part in child)
        try:
            [(_, definition)] = await session.query(f"SHOW CREATE TABLE {quoted}")
        except (ServerRefused, MissingPrivilege):  # it was dropped meanwhile, or the account may not read it
            continue
        keys += foreign_keys(child, str(definition))
    return Cascades(keys)


async def logs_cascades(session: Queries) -> bool:
    """Return whether the server logs the rows of children that it changes."""
    return [str(value) for _, value in await session.query(_LOGS_CHILDREN)] == ["OFF"]


async def unlogged_children(session: Queries, captured: CapturedTables, *, heal: bool = False) -> list[str]:
    """List the captured tables whose rows change without being logged, each with its parents.

    heal: `doubt.cascades` is `heal`, which needs the changes of the parents; only tables with others are listed.
    """
    if await logs_cascades(session):
        return []
    children = (await read_cascades(session)).children()
    return [
        f"{full_name(*child)} (of {', '.join(sorted(full_name(*parent) for parent in parents))})"
        for child, parents in children.items()
        if captured.captures(*child) and not (heal and all(captured.captures(*parent) for parent in parents))
    ]


def cascades_warning(host: str, children: list[str]) -> str:
    """Describe what `unlogged_children` lists."""
    text = "foreign keys change rows without logging them, so messages lack these changes"
    return f"database {host}: {text}: {first_names(children)}"


async def warn_of_cascades(session: Queries, captured: CapturedTables, host: str, *, heal: bool = False) -> None:
    """Log the captured tables whose rows change without being logged (see `unlogged_children`)."""
    if found := await unlogged_children(session, captured, heal=heal):
        log.warning(LogEvent.CASCADES_NOT_LOGGED, cascades_warning(host, found), host=host, tables=len(found))


def foreign_keys(child: TableName, definition: str) -> list[ForeignKey]:
    """Read the foreign keys of a table from its SHOW CREATE TABLE, which has each on a line of its own."""
    # Importing sqlglot takes long, and most servers have no foreign keys.
    from databus_changes.ddl.tokens import tokenize  # noqa: PLC0415

    lines = filter(_FOREIGN_KEY.match, definition.split("\n"))
    return [_foreign_key(child, TokenReader(tokenize(line))) for line in lines]


def _foreign_key(child: TableName, tokens: TokenReader) -> ForeignKey:
    """Read `CONSTRAINT name FOREIGN KEY (…) REFERENCES table (…) [ON DELETE …] [ON UPDATE …]`."""
    tokens.expect("CONSTRAINT")
    tokens.name()
    tokens.expect("FOREIGN", "KEY")
    columns, _ = tokens.key_columns()
    tokens.expect("REFERENCES")
    parent = tokens.table_name(child[0])
    parent_columns, _ = tokens.key_columns()
    actions = {"DELETE": "", "UPDATE": ""}
    while tokens.take("ON"):
        event, action = tokens.skip(), tokens.skip()
        if action in {"SET", "NO"}:
            tokens.skip()
        actions[event] = action if action in {"CASCADE", "SET"} else ""
    return ForeignKey(
        child=child,
        parent=parent,
        columns=_lower(columns),
        parent_columns=_lower(parent_columns),
        on_delete=actions["DELETE"],
        on_update=actions["UPDATE"],
    )


def _lower(columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(column.lower() for column in columns)
