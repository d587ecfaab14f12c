"""What the translation cannot know for sure, and what becomes of it.

Every stop of the translation is a `Doubt`, given to one callback. The reader's, `stop`, raises it. Another one may
return: the translation then leaves out what is in doubt, and only that, and goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeAlias

from databus.errors import FatalError, SchemaMismatch, StatementFormat
from databus_binlog import Event as BinlogEvent
from databus_changes.tables import TableName


class Reason(StrEnum):
    """Why something is in doubt; the value names what is left out if the translation goes on."""

    #: the next transaction begins before this one has ended: a server crashed, or files are missing
    UNFINISHED_TRANSACTION = "transactions without an end"
    #: a rows event stands where no transaction is open
    ROWS_OUTSIDE_TRANSACTION = "rows outside a transaction"
    #: ROLLBACK or ROLLBACK TO SAVEPOINT behind rows: the binlog does not say which of them it takes back
    ROLLBACK = "transactions with a ROLLBACK behind rows"
    #: only a later XA COMMIT or XA ROLLBACK decides
    XA_PREPARE = "transactions that end in XA PREPARE"
    #: columns are absent from a row image (binlog_row_image)
    INCOMPLETE_ROW_IMAGE = "rows that lack columns"
    #: a table map names no columns, and the table is not known
    UNKNOWN_TABLE = "rows of tables that are not known"
    #: a table map names no columns, and those of the table that is known are others
    COLUMN_MISMATCH = "rows that do not fit their table"
    #: DML that was logged as a statement, not as rows
    STATEMENT_FORMAT = "statements that may have changed rows"
    #: CREATE TABLE … SELECT that was logged as a statement
    CREATE_FROM_QUERY = "CREATE TABLE statements that fill the table from a query"
    #: the text cannot be split into tokens
    UNREADABLE_STATEMENT = "statements that cannot be read as SQL"
    #: there is no server to read the definition from; only offline
    UNDESCRIBED_TABLE = "statements on tables that the files do not describe"


_ERRORS: dict[Reason, type[FatalError]] = {
    Reason.UNKNOWN_TABLE: SchemaMismatch,
    Reason.COLUMN_MISMATCH: SchemaMismatch,
    Reason.STATEMENT_FORMAT: StatementFormat,
    Reason.CREATE_FROM_QUERY: StatementFormat,
}


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Something in the binlog of which it is not certain what it did to captured tables."""

    reason: Reason
    #: what happened, where, and what to do: one line
    text: str
    #: position of the event
    file: str
    offset: int
    #: tables whose rows are in doubt
    tables: frozenset[TableName] = frozenset()
    #: schemas of which any table may be in doubt; all captured tables where both sets are empty
    schemas: frozenset[str] = frozenset()

    @classmethod
    def at(
        cls,
        event: BinlogEvent,
        reason: Reason,
        text: str,
        *,
        tables: frozenset[TableName] = frozenset(),
        schemas: frozenset[str] = frozenset(),
    ) -> "Doubt":
        """Return a doubt about an event."""
        return cls(reason=reason, text=text, file=event.file, offset=event.start, tables=tables, schemas=schemas)

    @property
    def error(self) -> FatalError:
        """The error that stops the translation here."""
        return _ERRORS.get(self.reason, FatalError)(self.text)


#: Raises to stop; returns to leave out what is in doubt.
OnDoubt: TypeAlias = Callable[[Doubt], None]


def stop(doubt: Doubt) -> NoReturn:
    """Stop at any doubt."""
    raise doubt.error
