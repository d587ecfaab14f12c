"""The format `flashback`: SQL that undoes the changes, the last one first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from databus_binlog import Query
from databus_changes.ddl.statement import Statement
from databus_changes.tables import CapturedTables
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.definitions import Definitions
from databus_cli.binlog.reversed_file import ReversedFile
from databus_cli.binlog.sql import SqlLines, title
from databus_cli.binlog.sql_rows import SESSION, Image, RowStatements
from databus_core.errors import FatalError, PoisonError
from databus_core.events import Action, Begin, Commit, Table, full_name, is_absent

#: DDL that removes rows without logging them
_REMOVING = {Action.DROP, Action.TRUNCATE}


class Flashback(SqlLines):
    """Collects the statements, and prints them at the end.

    Raises PoisonError or FatalError, before anything is printed, if the changes cannot be undone exactly: if a row
    image lacks an old value, or if DDL in the chosen range changed a table after its rows, or removed rows.
    """

    def __init__(self, captured: CapturedTables, definitions: Definitions, choice: Choice, *, lenient: bool) -> None:
        super().__init__(captured, definitions, choice, lenient=lenient)
        self._undo = ReversedFile()
        #: size of the file before the open transaction; None if no transaction with rows is open
        self._open_at: int | None = None
        self._title = b""
        self._changed: set[tuple[str, str]] = set()
        self._without_end = 0

    def begin(self, change: Begin) -> Iterable[bytes]:
        """Keep the title of a transaction for its end."""
        self._drop_open()
        self._title = title(change.time_us, change.gtid, change.thread_id, change.file, change.start)
        return ()

    def row(self, rows: RowStatements, action: Action, before: Image, after: Image) -> Iterable[bytes]:
        """Keep the statement that undoes a row."""
        if action is Action.INSERT:
            statement: str | None = rows.delete(after)
        elif action is Action.DELETE:
            statement = rows.insert(before)
        else:
            _require_old_values(rows.table, before, after)
            statement = rows.update(after, before)
        if statement:
            if self._open_at is None:
                self._open_at = self._undo.size
                self._undo.append(b"COMMIT;\n")
            self._undo.append(statement.encode() + b"\n")
            self._changed.add((rows.table.schema, rows.table.name))
        return ()

    def commit(self, change: Commit) -> Iterable[bytes]:
        """Keep the begin of the transaction that undoes this one."""
        if self._open_at is not None:
            self._undo.append(self._title + b"BEGIN;\n")
            self._open_at = None
        return ()

    def ddl(self, event: Query, statement: Statement) -> Iterable[bytes]:
        """Raise FatalError if rows cannot be undone because of this statement."""
        if self.in_range():
            for change in statement.changes:
                removes = change.action in _REMOVING or statement.replaces
                if removes and self.captured.captures(*change.table):
                    _refuse(event, change.action, full_name(*change.table), "removes rows that are not in the binlog")
                if change.table in self._changed:
                    why = "changes the table after rows that are to be undone"
                    _refuse(event, change.action, full_name(*change.table), why)
            if (database := statement.database) is not None and database.drops_tables:
                _refuse(event, database.action, database.schema, "removes rows that are not in the binlog")
        return ()

    def rest(self) -> Iterator[bytes]:
        """Return the statements in reverse order."""
        self._drop_open()
        if self._undo.size:
            yield SESSION.encode()
            yield from self._undo

    def finish(self) -> Iterator[str]:
        """Finish after the last file, also after a failure."""
        self._undo.close()
        yield from super().finish()
        if self._without_end:
            yield f"transactions whose end was not read: {self._without_end} left out"

    def _drop_open(self) -> None:
        if self._open_at is not None:
            self._undo.truncate(self._open_at)
            self._open_at = None
            self._without_end += 1


def _require_old_values(table: Table, before: Image, after: Image) -> None:
    for column, old, new in zip(table.columns, before, after, strict=True):
        if is_absent(old) and not is_absent(new) and not column.generated:
            raise PoisonError(f"the row image of {table.full_name} lacks the old {column.name} (binlog_row_image)")


def _refuse(event: Query, action: Action, name: str, why: str) -> NoReturn:
    where = f"{event.file}:{event.start}"
    advice = "use --from and --to, --since and --until or --tables to choose changes without it"
    raise FatalError(f"{where}: {action.upper()} {name} {why}; {advice}")
