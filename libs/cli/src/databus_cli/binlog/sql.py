"""The format `sql`: SQL that does the changes again. Its base is that of `flashback`, too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from databus_binlog import AnyEvent, FormatDescription, Gtid, Query, TableMap
from databus_binlog.gtid import Flavor
from databus_binlog.times import time_text
from databus_changes.ddl.statement import Statement, parse_statement
from databus_changes.ddl.token import UnreadableStatement
from databus_changes.doubts import Reason
from databus_changes.statements import text_of
from databus_changes.tables import CapturedTables
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.definitions import Definitions, flavor_of
from databus_cli.binlog.lines import FRAMES
from databus_cli.binlog.sql_rows import SESSION, Image, RowStatements
from databus_cli.binlog.transaction import OpenTransaction
from databus_cli.binlog.translated import Translated
from databus_core.errors import PoisonError
from databus_core.events import (
    Action,
    Begin,
    Commit,
    Event,
    OversizedRow,
    RowsEvent,
    Table,
    TableDefinition,
    first_names,
)
from databus_messages.formats.columns import invalid_value
from databus_wire.packed_rows import PackedRows


class SqlLines(Translated):
    """Makes one statement for each chosen row."""

    partial = True
    ignored = frozenset({Reason.UNDESCRIBED_TABLE})  # DDL is not printed as it is translated

    def __init__(self, captured: CapturedTables, definitions: Definitions, choice: Choice, *, lenient: bool) -> None:
        super().__init__(captured, definitions, choice, lenient=lenient)
        self._flavor: Flavor = "mysql"
        self._opened = OpenTransaction()
        #: whether the next statement takes effect: MariaDB's ALTER in two phases is logged twice
        self._takes_effect = True
        #: file of the translated transaction
        self._file = ""
        self._tables: dict[str, Table] = {}
        self._rows: dict[str, RowStatements] = {}
        #: tables of statements that are known only from their table maps
        self._undefined: set[str] = set()

    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Create the translation."""
        super().start(head, inside=inside)
        self._flavor = flavor_of(head)

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Return the statements of an event."""
        yield from super().of(event, tables)
        self._opened.add(event)
        if isinstance(event, Gtid):
            self._takes_effect = event.alter not in {"start", "rollback"}
        if (
            isinstance(event, Query)
            and event.query not in FRAMES
            and self._takes_effect
            and (statement := self._parsed(event)) is not None
        ):
            yield from self.ddl(event, statement)

    def finish(self) -> Iterator[str]:
        """Finish after the last file; yield what was left out or is not known."""
        yield from super().finish()
        if self._undefined:
            names = first_names(sorted(self._undefined))
            yield (
                f"known only from the binlog, which does not show what is generated: {names}; for tables with "
                "generated columns use --schema or --schema-server"
            )

    def lines_of(self, change: Event, event: AnyEvent) -> Iterable[bytes]:
        """Return the statements of a change."""
        match change:
            case TableDefinition():
                self._tables[change.table.fingerprint] = change.table
            case Begin():
                self._file = change.file
                return self.begin(change)
            case Commit():
                return self.commit(change)
            case RowsEvent() if self.choice.action(change.action):
                return self._statements(change)
            case OversizedRow() if self.choice.action(change.action):
                table = self._tables[change.table].full_name
                raise PoisonError(f"a row of {table} at {self._file}:{change.start} is above --row-limit; raise it")
        return ()

    @abstractmethod
    def begin(self, change: Begin) -> Iterable[bytes]:
        """Return the lines for the begin of a transaction."""

    @abstractmethod
    def commit(self, change: Commit) -> Iterable[bytes]:
        """Return the lines for the end of a transaction."""

    @abstractmethod
    def row(self, rows: RowStatements, action: Action, before: Image, after: Image) -> Iterable[bytes]:
        """Return the lines for a row; `before` and `after` are the same if it was inserted or deleted."""

    @abstractmethod
    def ddl(self, event: Query, statement: Statement) -> Iterable[bytes]:
        """Return the lines for DDL on captured tables or databases, in any transaction."""

    def in_range(self) -> bool:
        """Return whether the open transaction is in the chosen range."""
        return self.choice.transaction(self._opened.gtid, self._opened.time_us)

    def captured_tables(self, statement: Statement) -> list[tuple[str, str]]:
        """Return the captured tables that a statement changes."""
        return [change.table for change in statement.changes if self.captured.captures(*change.table)]

    def _statements(self, change: RowsEvent) -> Iterator[bytes]:
        table = self._tables[change.table]
        if (statements := self._rows.get(change.table)) is None:
            statements = self._rows[change.table] = RowStatements(table)
        if not table.charset:
            self._undefined.add(table.full_name)
        images = iter(self.choice.rows(table, change.action, PackedRows(change.rows).unpack()))  # type: ignore[arg-type]
        try:
            for image in images:
                after = next(images) if change.action is Action.UPDATE else image
                yield from self.row(statements, change.action, image, after)
        except (PoisonError, ValueError) as error:
            fault = error if isinstance(error, PoisonError) else invalid_value(table, error)
            raise PoisonError(f"{self._file}:{change.start}: {fault}") from None

    def _parsed(self, event: Query) -> Statement | None:
        """Return a statement that took effect on captured tables or databases."""
        try:
            statement = parse_statement(
                text_of(event),
                event.schema,
                server_charset=event.server_charset,
                sql_mode=event.sql_mode,
                flavor=self._flavor,
            )
        except UnreadableStatement:  # a doubt, which the translation has reported
            return None
        if event.error_code or statement.temporary:
            return None
        database = statement.database is not None and self.captured.captures_some(statement.database.schema)
        return statement if database or self.captured_tables(statement) else None


class Sql(SqlLines):
    """Prints the statements, in transactions like the original ones."""

    _is_open = False
    _has_begun = False
    _title = b""

    def begin(self, change: Begin) -> Iterable[bytes]:
        """Keep the title of a transaction for its first row."""
        self._title = title(change.time_us, change.gtid, change.thread_id, change.file, change.start)
        return ()

    def row(self, rows: RowStatements, action: Action, before: Image, after: Image) -> Iterable[bytes]:
        """Return the statement of a row."""
        if action is Action.INSERT:
            statement: str | None = rows.insert(after)
        elif action is Action.DELETE:
            statement = rows.delete(before)
        else:
            statement = rows.update(before, after)
        if statement:
            if not self._is_open:
                yield self._head() + self._title + b"BEGIN;\n"
                self._is_open = True
            yield statement.encode() + b"\n"

    def commit(self, change: Commit) -> Iterable[bytes]:
        """End the transaction, if it has rows."""
        if self._is_open:
            self._is_open = False
            yield b"COMMIT;\n"

    def ddl(self, event: Query, statement: Statement) -> Iterable[bytes]:
        """Return the statement as it is logged, with its default schema."""
        if self.choice.statement(event.query) and self.in_range() and self.choice.connection(event.thread_id):
            use = "" if statement.database or not event.schema else f"USE `{event.schema.replace('`', '``')}`;\n"
            opened = self._opened
            about = title(opened.time_us, opened.gtid, event.thread_id, event.file, event.start)
            yield self._head() + about + use.encode() + event.query + b";\n"

    def rest(self) -> Iterator[bytes]:
        """Undo a transaction whose end was not read."""
        if self._is_open:
            yield b"-- the end of this transaction was not read\nROLLBACK;\n"

    def _head(self) -> bytes:
        head = b"" if self._has_begun else SESSION.encode()
        self._has_begun = True
        return head


def title(time_us: int, gtid: str, thread_id: int, file: str, offset: int) -> bytes:
    """Return a comment that identifies a transaction."""
    parts = ["--", time_text(time_us), gtid, f"thread {thread_id}" if thread_id else "", f"{file}:{offset}"]
    return " ".join(filter(None, parts)).encode() + b"\n"
