"""The cases in which the binlog does not show what happened to captured tables.

Each case is a `Doubt`. The reader passes a `Parking`, which decides whether to leave out the table, leave out the
transaction, or stop. Without one, the translation calls `on_doubt`: the default, `stop`, raises the doubt's error; if
it returns, only what is in doubt is left out.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NoReturn, Protocol, TypeAlias

from databus_binlog import Event as BinlogEvent
from databus_changes.place import Place
from databus_changes.tables import Rename, TableName
from databus_core.errors import START_OVER, FatalError, SchemaMismatch, StatementFormat, UnknownTable, skip_advice
from databus_core.events import Event, full_name
from databus_core.log_events import Fields


class Reason(StrEnum):
    """Why something is in doubt; the value describes what is left out if the translation continues."""

    #: the next transaction begins before this one has ended: a server crashed, or files are missing
    UNFINISHED_TRANSACTION = "transactions without an end"
    #: a rows event while no transaction is open
    ROWS_OUTSIDE_TRANSACTION = "rows outside a transaction"
    #: ROLLBACK or ROLLBACK TO SAVEPOINT after rows: the binlog does not show which of these rows are undone
    ROLLBACK = "transactions with a ROLLBACK after rows"
    #: only for files: neither XA COMMIT nor XA ROLLBACK is in them
    XA_PREPARE = "transactions that end in XA PREPARE"
    #: only for files: the XA PREPARE, and with it the transaction's rows, is not in them
    XA_COMMIT = "transactions that begin with XA COMMIT"
    #: DDL has changed a table between XA PREPARE and XA COMMIT, which servers do not allow
    PREPARED_TABLES = "prepared transactions whose tables have changed"
    #: columns are absent from a row image (binlog_row_image)
    INCOMPLETE_ROW_IMAGE = "rows that lack columns"
    #: a table map names no columns, and the table is not known
    UNKNOWN_TABLE = "rows of tables that are not known"
    #: a table map names no columns, and does not fit the known table
    COLUMN_MISMATCH = "rows that do not fit their table"
    #: DML that was logged as a statement, not as rows
    STATEMENT_FORMAT = "statements that may have changed rows"
    #: CREATE TABLE … SELECT that was logged as a statement
    CREATE_FROM_QUERY = "CREATE TABLE statements that fill the table from a query"
    #: EXCHANGE, DROP or TRUNCATE PARTITION, IMPORT TABLESPACE and the like (see `ddl.unlogged`)
    UNLOGGED_ROWS = "changes of rows by ALTER TABLE statements"
    #: RENAME of a table from a name that is not captured to one that is
    UNSEEN_ROWS = "tables that were not captured under their old names"
    #: the text of a statement cannot be split into tokens
    UNREADABLE_STATEMENT = "statements that cannot be read as SQL"
    #: the binlog files do not describe the table of a statement, and there is no server to read the table from
    UNDESCRIBED_TABLE = "statements on tables that the files do not describe"
    #: an operator has requested it (`databus_core.skips`)
    SKIPPED = "transactions that are skipped"


#: doubts that concern any captured table, so that only a new start ends them
CONCERN_ALL = {Reason.ROWS_OUTSIDE_TRANSACTION, Reason.UNREADABLE_STATEMENT, Reason.UNDESCRIBED_TABLE}

_ERRORS: dict[Reason, type[FatalError]] = {
    Reason.UNKNOWN_TABLE: UnknownTable,
    Reason.COLUMN_MISMATCH: SchemaMismatch,
    Reason.STATEMENT_FORMAT: StatementFormat,
    Reason.CREATE_FROM_QUERY: StatementFormat,
}


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """An event whose effect on captured tables is not certain."""

    reason: Reason
    #: what happened and where
    text: str
    #: what to do about the cause; empty: nothing is known
    advice: str
    #: position of the event
    file: str
    offset: int
    #: tables that are in doubt
    tables: frozenset[TableName] = frozenset()
    #: schemas of which any table may be in doubt; if `tables` and `schemas` are empty, any captured table may be
    schemas: frozenset[str] = frozenset()
    #: the tables that a statement names, captured or not, if it can change others only through triggers, views and
    #: foreign keys of these (see `narrowing`)
    targets: frozenset[TableName] = frozenset()
    #: whether the outcome of the open transaction is in doubt: the translation emits nothing more of it, and the
    #: callback has to drop what was emitted
    whole_transaction: bool = False
    #: GTID or position of the transaction that is left out if it is skipped; empty: not known
    transaction: str = ""

    @property
    def error(self) -> FatalError:
        """The error that stops the translation here."""
        skip = skip_advice(self.transaction) if self.transaction else ""
        text = "; ".join(filter(None, (self.text, self.advice, skip, START_OVER)))
        error = _ERRORS.get(self.reason, FatalError)(text)
        error.fields = Fields(position=f"{self.file}:{self.offset}")
        error.doubts_all = self.reason in CONCERN_ALL
        if len(self.tables) == 1:
            [table] = self.tables
            error.fields["table"] = full_name(*table)
        return error


#: Raises an error to stop the translation; returns to leave out what is in doubt.
OnDoubt: TypeAlias = Callable[[Doubt], None]


class Parking(Protocol):
    """Sets tables in doubt aside, while the translation goes on with all others."""

    def open(self, gtid: str, place: Place) -> bool:
        """Open a group. Return whether it is to be skipped: then no doubt ends the translation until `end_skip`."""
        ...

    def may_concern(self, place: Place | None) -> bool:
        """Return whether a group at or after a place (None: at any) may be skipped, left out or a reason to stop.

        If not, `open` and `begin` need not be called for it.
        """
        ...

    async def end_skip(self) -> list[Event]:
        """Park the tables of the group that is skipped. Return the events that record it."""
        ...

    def report(self, doubt: Doubt) -> None:
        """Take note of a doubt. Raises an error if the translation has to end."""
        ...

    def begin(self, place: Place) -> Doubt | None:
        """Begin the group at a place. Return the doubt about its outcome, if all its rows are to be left out."""
        ...

    def leaves_out(self, table: TableName) -> bool:
        """Return whether the rows of a table are left out."""
        ...

    def dropped(self, table: TableName) -> list[Event]:
        """End the doubt about a table that was dropped. Return the events to emit."""
        ...

    def renamed(self, renames: Sequence[Rename]) -> list[Event]:
        """Let doubts follow the tables that one statement renames. Return the events to emit."""
        ...

    def columns_removed(self, table: TableName, columns: Collection[str]) -> list[Event]:
        """Take note that a statement drops or renames columns, in lower case. Return the events to emit."""
        ...

    async def park(self) -> list[Event]:
        """Park the tables of the doubts that were reported since the last call. Return the events that record it."""
        ...


def stop(doubt: Doubt) -> NoReturn:
    """Stop at any doubt."""
    raise doubt.error


# --- transactions -----------------------------------------------------------------------------------------------------


def unfinished_transaction(event: BinlogEvent, tables: Iterable[TableName]) -> Doubt:
    """`event` begins a transaction while the previous one, with changes of these tables, has not ended."""
    text = f"a transaction before {_position(event)} has no end, as after a crash of the server"
    return _doubt(Reason.UNFINISHED_TRANSACTION, event, text, tables, whole_transaction=True)


def rows_outside_transaction(event: BinlogEvent, table: TableName) -> Doubt:
    """`event` has rows while no transaction is open."""
    text = f"rows of {full_name(*table)} outside a transaction at {_position(event)}"
    return _doubt(Reason.ROWS_OUTSIDE_TRANSACTION, event, text, [table])


def rollback(event: BinlogEvent, tables: Iterable[TableName]) -> Doubt:
    """A transaction with changes of these tables is rolled back, maybe in part."""
    where = f"ROLLBACK after captured rows at {_position(event)}"
    text = f"{where}: the binlog does not show which of these rows take effect"
    return _doubt(Reason.ROLLBACK, event, text, tables, whole_transaction=True)


def skipped(event: BinlogEvent, transaction: str, tables: Iterable[TableName]) -> Doubt:
    """Rows of these tables, in the transaction that begins with `event`, are not published."""
    text = f"transaction {transaction} at {_position(event)} is skipped"
    return _doubt(Reason.SKIPPED, event, text, tables)


def xa_commit(event: BinlogEvent, xid: str) -> Doubt:
    """An XA transaction is committed whose XA PREPARE was not read, and there is no server to read it from."""
    text = f"XA COMMIT {xid} at {_position(event)}: the rows of this transaction precede the files"
    return _doubt(Reason.XA_COMMIT, event, text)


def prepared_tables(event: BinlogEvent, tables: Iterable[TableName]) -> Doubt:
    """Columns of these tables are not those with which the XA transaction was prepared that `event` commits."""
    tables = sorted(tables)
    names = ", ".join(full_name(*table) for table in tables)
    text = f"XA COMMIT at {_position(event)} of rows that were prepared before {names} was altered"
    return _doubt(Reason.PREPARED_TABLES, event, text, tables)


# --- rows -------------------------------------------------------------------------------------------------------------

#: names that MySQL gives to the hidden columns of functional indexes: in early releases, a hash of the index's name
_FUNCTIONAL_INDEX = re.compile(r"!hidden!.+|[0-9a-f]{32}")
_NAME_COLUMNS = "set binlog_row_metadata=FULL on the server (and in sessions that set it themselves)"


def incomplete_row_image(event: BinlogEvent, table: TableName, columns: Sequence[str]) -> Doubt:
    """These columns are absent from the rows of `event`."""
    advice = "set binlog_row_image=FULL on the server (and in sessions that set it themselves)"
    if all(map(_FUNCTIONAL_INDEX.fullmatch, columns)):
        advice = (
            "this looks like a hidden column of a functional index, which early releases of MySQL 8.0 describe but do "
            "not log: upgrade the server, or drop the index"
        )
    text = f"rows of {full_name(*table)} at {_position(event)} lack columns ({', '.join(columns)})"
    return _doubt(Reason.INCOMPLETE_ROW_IMAGE, event, text, [table], advice=advice)


def unknown_table(event: BinlogEvent, table: TableName) -> Doubt:
    """The table map of these rows names no columns, and the table is not known."""
    text = (
        f"rows of {full_name(*table)} at {_position(event)}: the binlog does not name their columns, and the table is "
        "not known"
    )
    advice = (
        "if information_schema does not show it to the account, grant SELECT on it and start the reader again; if it "
        f"was altered since, {_NAME_COLUMNS}"
    )
    return _doubt(Reason.UNKNOWN_TABLE, event, text, [table], advice=advice)


def column_mismatch(event: BinlogEvent, table: TableName, mismatch: str) -> Doubt:
    """The table map of these rows names no columns, and does not fit the known table."""
    text = (
        f"rows of {full_name(*table)} do not fit what is known of the table ({mismatch}) at {_position(event)}, and "
        "the binlog does not name their columns"
    )
    return _doubt(Reason.COLUMN_MISMATCH, event, text, [table], advice=_NAME_COLUMNS)


# --- statements -------------------------------------------------------------------------------------------------------

_LOG_ROWS = "set binlog_format=ROW for all sessions"


def statement_format(event: BinlogEvent, schemas: Iterable[str], targets: Iterable[TableName] = ()) -> Doubt:
    """A statement may have changed rows of any table of these schemas, without logging the rows.

    targets: as in `Doubt`.
    """
    schemas = sorted(schemas)
    text = _rows_not_logged(f"tables of {', '.join(schemas)}", _position(event))
    doubt = _doubt(Reason.STATEMENT_FORMAT, event, text, schemas=schemas, advice=_LOG_ROWS)
    return replace(doubt, targets=frozenset(targets))


def rows_not_logged(tables: Iterable[TableName], file: str, offset: int) -> str:
    """Return the text of a doubt about a statement that may have changed only these tables."""
    return _rows_not_logged(", ".join(full_name(*table) for table in sorted(tables)), f"{file}:{offset}")


def create_from_query(event: BinlogEvent, table: TableName) -> Doubt:
    """A statement has filled the table that it creates, without logging the rows."""
    text = rows_not_logged([table], event.file, event.start)
    return _doubt(Reason.CREATE_FROM_QUERY, event, text, [table], advice=_LOG_ROWS)


def unlogged_rows(event: BinlogEvent, tables: Iterable[TableName]) -> Doubt:
    """An ALTER TABLE has moved, removed or replaced rows of these tables, or may have, without logging them."""
    tables = sorted(tables)
    names = ", ".join(full_name(*table) for table in tables)
    text = f"ALTER TABLE at {_position(event)} may have removed or replaced rows of {names}, which no server logs"
    return _doubt(Reason.UNLOGGED_ROWS, event, text, tables)


def unseen_rows(event: BinlogEvent, tables: Iterable[TableName]) -> Doubt:
    """A statement has given these names to tables that had names that are not captured."""
    tables = sorted(tables)
    names = ", ".join(full_name(*table) for table in tables)
    where = f"RENAME at {_position(event)}"
    text = f"the table that {where} names {names} was not captured before: its rows are not published"
    advice = "to follow such a table without loading it, capture its old name, too (source.include, source.exclude)"
    return _doubt(Reason.UNSEEN_ROWS, event, text, tables, advice=advice)


def unreadable_statement(event: BinlogEvent) -> Doubt:
    """The text of a statement cannot be split into tokens."""
    text = f"the statement at {_position(event)} cannot be read as SQL and may concern captured tables"
    return _doubt(Reason.UNREADABLE_STATEMENT, event, text)


def undescribed_table(event: BinlogEvent, table: TableName) -> Doubt:
    """The effect of a statement on a table is not known, and there is no server to read the table from."""
    text = f"a statement at {_position(event)} changes {full_name(*table)}, which the files do not describe"
    return _doubt(Reason.UNDESCRIBED_TABLE, event, text, [table])


def _rows_not_logged(what: str, position: str) -> str:
    return f"a statement at {position} may have changed {what} without logging the rows"


def _position(event: BinlogEvent) -> str:
    return f"{event.file}:{event.start}"


def _doubt(
    reason: Reason,
    event: BinlogEvent,
    text: str,
    tables: Iterable[TableName] = (),
    schemas: Iterable[str] = (),
    *,
    advice: str = "",
    whole_transaction: bool = False,
) -> Doubt:
    return Doubt(
        reason=reason,
        text=text,
        advice=advice,
        file=event.file,
        offset=event.start,
        tables=frozenset(tables),
        schemas=frozenset(schemas),
        whole_transaction=whole_transaction,
    )
