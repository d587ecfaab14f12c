"""Reads the statements of the binlog: returns DDL, and reports doubts about captured tables."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from databus_binlog import events as binlog
from databus_changes import doubts
from databus_changes.ddl.statement import DatabaseChange, Statement, TableChange, parse_statement
from databus_changes.ddl.token import UnreadableStatement
from databus_changes.doubts import OnDoubt
from databus_changes.tables import CapturedTables, Rename, TableName, moves
from databus_changes.tracker import TableTracker
from databus_core.events import Action, full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics

log = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Ddl:
    """A statement that may define tables or schemas."""

    statement: Statement
    #: tables of the statement's changes, captured or not, except temporary ones; if it drops a database, all known
    #: tables of the database
    tables: tuple[TableName, ...]
    #: the changes to publish: one for each captured table, two for a replaced one, none for a CREATE TABLE that fills
    #: its table from a query
    captured: tuple[TableChange, ...]
    #: the renames of tables, captured or not, one by one
    renames: tuple[Rename, ...]
    #: the new names, captured, of tables that had a name that is not captured
    arrived: frozenset[TableName]
    #: the change of a database that may have captured tables
    database: DatabaseChange | None
    #: whether the statement did what its text says; false if it failed half way, or some of its tables are temporary
    as_written: bool


class StatementReader:
    """Reads the statements of one binlog in their order.

    Sessions with binlog_format MIXED or STATEMENT log changes of temporary tables as statements, which need not say
    that the table is temporary. So the names of temporary tables are remembered for each session.
    """

    def __init__(self, captured: CapturedTables, tracker: TableTracker, on_doubt: OnDoubt) -> None:
        self._captured = captured
        self._tracker = tracker
        self._on_doubt = on_doubt
        #: server id and thread id → temporary tables
        self._temporary: dict[tuple[int, int], set[TableName]] = {}
        #: tables that are not captured, and were changed by statements
        self._skipped: set[TableName] = set()

    def read(self, event: binlog.Query) -> Ddl | None:
        """Return a statement that may define tables; None for DML, and for text that cannot be read.

        Reports a doubt for DML that may have changed rows of captured tables without logging them, for a CREATE TABLE
        that fills a captured table from a query, for an ALTER TABLE that may have removed rows of captured tables, and
        for text that cannot be read and may concern captured tables. DML that names a captured schema, but certainly
        changes only tables that are not captured, is logged and counted.
        """
        try:
            statement = parse_statement(
                text_of(event),
                event.schema,
                server_charset=event.server_charset,
                sql_mode=event.sql_mode,
                flavor=self._tracker.dialect.flavor,
            )
        except UnreadableStatement:
            self._unreadable(event)
            return None
        if self._tracker.dialect.folds_names:
            statement = statement.folded()
        if statement.changes_rows:
            self._dml(statement, event)
            return None
        database = statement.database
        if database is not None:
            changes, as_written = self._drops(database), True
        else:
            changes = self._lasting(statement, event)
            if changes:
                self._require_logged_rows(statement, event)
            as_written = len(changes) == len(statement.changes)
        renames = replace(statement, changes=tuple(changes)).renames
        return Ddl(
            statement=statement,
            tables=tuple(dict.fromkeys(change.table for change in changes)),
            captured=self._to_publish(statement, changes, event),
            renames=tuple(renames),
            arrived=self._arrived(renames),
            database=database if database and self._captured.captures_some(database.schema) else None,
            as_written=as_written and not event.error_code,
        )

    def _unreadable(self, event: binlog.Query) -> None:
        if not self._captured.mentions_some(text_of(event)) and not self._captured.captures_some(event.schema):
            return
        self._on_doubt(doubts.unreadable_statement(event))
        self._tracker.forget_tables()

    def _dml(self, statement: Statement, event: binlog.Query) -> None:
        tables = statement.targets - self._temporary.get(_session(event), set())
        if statement.targets and not tables:
            return
        schemas = list(filter(self._captured.captures_some, statement.schemas))
        if schemas and (not tables or any(map(self._may_capture, tables))):
            self._on_doubt(doubts.statement_format(event, schemas, tables if statement.is_plain else ()))
        elif schemas:
            self._skip(tables, event)

    def _may_capture(self, table: TableName) -> bool:
        """Return whether a table is captured; the server may treat its name as if it were in lower case."""
        schema, name = table
        return self._captured.captures(schema, name) or self._captured.captures(schema.lower(), name.lower())

    def _skip(self, tables: Iterable[TableName], event: binlog.Query) -> None:
        """Report a statement that changes only tables that are not captured; log each table once."""
        metrics.STATEMENTS_SKIPPED.inc()
        for table in set(tables) - self._skipped:
            self._skipped.add(table)
            text = (
                f"a statement changed {full_name(*table)}, which is not captured, and logged no rows: captured rows "
                "changed by it through a trigger, view or function are missing; set binlog_format=ROW for all sessions"
            )
            position = f"{event.file}:{event.start}"
            log.warning(LogEvent.STATEMENT_SKIPPED, text, table=full_name(*table), position=position)

    def _require_logged_rows(self, statement: Statement, event: binlog.Query) -> None:
        """Report a doubt if a statement may have removed rows of captured tables; the statement is still returned."""
        if tables := [table for table in statement.unlogged if self._captured.captures(*table)]:
            self._on_doubt(doubts.unlogged_rows(event, tables))

    def _arrived(self, renames: Iterable[Rename]) -> frozenset[TableName]:
        """Return the captured names of the tables that had names that are not captured."""
        captures = self._captured.captures
        return frozenset(new for old, new in moves(renames).items() if captures(*new) and not captures(*old))

    def _drops(self, database: DatabaseChange) -> list[TableChange]:
        """Return a DROP of each known table of a database if the statement drops them."""
        tables = self._tracker.tables_in(database.schema) if database.drops_tables else ()
        return [TableChange(Action.DROP, table, database.query) for table in tables]

    def _lasting(self, statement: Statement, event: binlog.Query) -> list[TableChange]:
        """Return the changes of tables that are not temporary, and remember which tables are temporary."""
        temporary = self._temporary.pop(_session(event), set())
        lasting: list[TableChange] = []
        for step in statement.steps:
            old, new = step[0].table, step[-1].table
            if statement.temporary or (old in temporary and step[0].action is not Action.CREATE):
                temporary.discard(old)
                if step[0].action is not Action.DROP:
                    temporary.add(new)
            else:
                lasting += step
        if temporary:
            self._temporary[_session(event)] = temporary
        return lasting

    def _to_publish(
        self, statement: Statement, changes: Iterable[TableChange], event: binlog.Query
    ) -> tuple[TableChange, ...]:
        """Return the first change of each captured table; a RENAME that swaps tables names some of them twice.

        CREATE OR REPLACE drops the tables that exist, even if it fails afterwards.
        For a CREATE TABLE that fills a captured table from a query, reports a doubt and returns nothing.
        """
        captured: dict[TableName, TableChange] = {}
        for change in changes:
            if self._captured.captures(*change.table):
                captured.setdefault(change.table, change)
        if statement.has_query and captured:
            [table] = captured
            self._on_doubt(doubts.create_from_query(event, table))
            return ()
        if statement.replaces:
            drops = [_drop(table) for table in captured if self._tracker.existing(table)]
            creates = [change for change in captured.values() if change.action is Action.CREATE]
            return (*drops, *([] if event.error_code else creates))
        return tuple(captured.values())


def _drop(table: TableName) -> TableChange:
    schema, name = (part.replace("`", "``") for part in table)
    return TableChange(Action.DROP, table, f"DROP TABLE `{schema}`.`{name}` /* CREATE OR REPLACE */")


def text_of(event: binlog.Query) -> str:
    """Return the text of a statement; bytes that are not UTF-8 are escaped."""
    return event.query.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text that `text_of` returned."""
    return text.encode("utf-8", "surrogateescape")


def _session(event: binlog.Query) -> tuple[int, int]:
    return event.server_id, event.thread_id
