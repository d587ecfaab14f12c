"""Which statements of the binlog matter to captured tables: they are published, or the reader stops."""

from dataclasses import dataclass

from sqlglot.errors import TokenError

from databus.errors import START_AFRESH, FatalError, StatementFormat
from databus.events import Action
from databus.settings import Source
from databus_binlog import events as binlog
from databus_changes.ddl.statement import Name, Statement, TableChange, read
from databus_changes.schemas import Schemas


@dataclass(frozen=True)
class Effects:
    """What a statement does to tables that last."""

    #: DDL on captured tables
    changes: list[TableChange]
    #: all tables it defines, captured or not
    tables: list[Name]
    #: it did what its text says; not: it failed half way, or some of its tables are temporary
    whole: bool = True
    #: it is about rows, and defines nothing
    is_dml: bool = False


class Statements:
    """Reads the statements of one generation.

    Sessions that do not log rows only (MIXED, STATEMENT) log what they do to temporary tables as statements, which name
    them like any other table. So temporary tables are remembered by session.
    """

    def __init__(self, source: Source, schemas: Schemas) -> None:
        self._source = source
        self._schemas = schemas
        self._temporary: dict[tuple[int, int], set[Name]] = {}

    def read(self, event: binlog.Query) -> Effects:
        """Tell what a statement defines.

        Raises StatementFormat where rows of a captured table may have changed that are not in the binlog, FatalError
        where the text cannot be read and may concern one.
        """
        statement = self._read(event)
        if statement.dropped_schema is not None:
            schema = statement.dropped_schema
            drops = [
                TableChange(Action.DROP, schema, name, text_of(event))
                for name in self._schemas.tables_of(schema)
                if self._source.captures(schema, name)
            ]
            return Effects(drops, [], whole=not event.error_code)
        if statement.changes_rows:
            self._refuse(statement, event)
        lasting = self._lasting(statement, event)
        named = {change.table: change for change in reversed(lasting)}  # a swap of tables names some twice
        tables = list(dict.fromkeys(change.table for change in lasting))
        changes = [named[table] for table in tables if self._source.captures(*table)]
        if statement.fills and changes:
            raise StatementFormat(_hidden(f"{changes[0].schema}.{changes[0].name}", event))
        return Effects(
            changes,
            tables,
            whole=len(lasting) == len(statement.changes) and not event.error_code,
            is_dml=statement.changes_rows,
        )

    def _read(self, event: binlog.Query) -> Statement:
        try:
            return read(text_of(event), event.schema)
        except TokenError as error:
            if not self._source.mentions_some(text_of(event)) and not self._source.captures_some(event.schema):
                return Statement()
            raise FatalError(
                f"the statement at {event.file}:{event.start} cannot be read as SQL (does its session set "
                f"NO_BACKSLASH_ESCAPES?) and may concern captured tables: {START_AFRESH}"
            ) from error

    def _refuse(self, statement: Statement, event: binlog.Query) -> None:
        """Stop at a statement that may have changed captured rows."""
        if statement.target in self._temporary.get(_session(event), set()):
            return
        for schema in sorted(statement.schemas):
            if self._source.captures_some(schema):
                raise StatementFormat(_hidden(f"tables of {schema}", event))

    def _lasting(self, statement: Statement, event: binlog.Query) -> list[TableChange]:
        """Leave out what is done to temporary tables, and keep account of them."""
        temporary = self._temporary.pop(_session(event), set())
        lasting: list[TableChange] = []
        for group in statement.steps:
            old, new = group[0].table, group[-1].table
            if statement.temporary or (old in temporary and group[0].action is not Action.CREATE):
                temporary.discard(old)
                if group[0].action is not Action.DROP:
                    temporary.add(new)
            else:
                lasting += group
        if temporary:
            self._temporary[_session(event)] = temporary
        return lasting


def text_of(event: binlog.Query) -> str:
    """Give the text of a statement, with what is no UTF-8 escaped."""
    return event.query.decode("utf-8", "surrogateescape")


def _session(event: binlog.Query) -> tuple[int, int]:
    return event.server_id, event.thread_id


def _hidden(what: str, event: binlog.Query) -> str:
    return (
        f"a statement may have changed {what} at {event.file}:{event.start} and the binlog has no rows of it: "
        f"set binlog_format=ROW for all sessions; {START_AFRESH}"
    )
