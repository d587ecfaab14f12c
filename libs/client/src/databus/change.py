"""What a program gets: changes with Python values, and transactions of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from databus.bookmark import Bookmark
from databus.origin import Origin
from databus.trail import Mark
from databus_binlog import Position
from databus_core.events import Action, Table

#: column → value; a column that the binlog does not have (`publisher.publish_partial`) is left out
Values: TypeAlias = dict[str, Any]
#: column → exact text (docs/reference/values.md); `bytes` in columns of bytes
Texts: TypeAlias = dict[str, str | bytes | None]


class Rows(Protocol):
    """How the row images of a table are read; one for each definition of a table."""

    table: Table

    def values(self, image: Any) -> Values:
        """Return the Python values. Raises ValueError."""

    def texts(self, image: Any) -> Texts:
        """Return the exact texts. Raises LookupError if the format does not have them."""


class Change:
    """A change of a row, or a statement that changed a table."""

    __slots__ = ("_after", "_after_values", "_before", "_before_values", "_mark", "_rows", "action", "index", "origin",
                 "query")  # fmt: skip

    def __init__(
        self,
        action: Action,
        rows: Rows,
        origin: Origin,
        mark: Mark,
        index: int,
        before: Any = None,
        after: Any = None,
        query: str | None = None,
    ) -> None:
        #: `insert`, `update`, `delete`; or a statement: `create`, `alter`, `drop`, `truncate`
        self.action = action
        self.origin = origin
        self._mark = mark
        #: number of the change in its record, from 0
        self.index = index
        #: text of a statement
        self.query = query
        self._rows = rows
        self._before = before
        self._after = after
        self._before_values: Values | None = None
        self._after_values: Values | None = None

    @property
    def table(self) -> str:
        """The name `schema.table`."""
        return self._rows.table.full_name

    @property
    def definition(self) -> Table:
        """Columns and key of the table; of a statement, those after it."""
        return self._rows.table

    @property
    def before(self) -> Values | None:
        """The row before an update or a delete."""
        if self._before_values is None and self._before is not None:
            self._before_values = self._rows.values(self._before)
        return self._before_values

    @property
    def after(self) -> Values | None:
        """The row after an insert or an update."""
        if self._after_values is None and self._after is not None:
            self._after_values = self._rows.values(self._after)
        return self._after_values

    @property
    def before_text(self) -> Texts | None:
        """The row before, as exact text. Raises LookupError if the format does not have it."""
        return None if self._before is None else self._rows.texts(self._before)

    @property
    def after_text(self) -> Texts | None:
        """The row after, as exact text. Raises LookupError if the format does not have it."""
        return None if self._after is None else self._rows.texts(self._after)

    @property
    def key(self) -> Values | None:
        """Values of the primary key after the change, of a delete before it; empty without a primary key."""
        row = self.after if self._after is not None else self.before
        columns = self.definition.columns
        return None if row is None else {columns[i].name: row[columns[i].name] for i in self.definition.primary_key}

    @property
    def is_snapshot(self) -> bool:
        """Whether the row was read from the table, by a dump or a backfill: it is not a change."""
        return self.origin.is_snapshot

    @property
    def position(self) -> Position | None:
        """End of the event in the binlog; see `Origin`."""
        return self.origin.position

    @property
    def transaction(self) -> int:
        """Ordinal of the transaction in the pipeline; 0 for a row of a dump."""
        return self.origin.transaction

    @property
    def time(self) -> datetime:
        """When the change was published; of a row of a dump, when the dump was requested."""
        return datetime.fromtimestamp(self.origin.time_ms / 1000, UTC)

    def bookmark(self) -> Bookmark:
        """Return what is done once this change and all before it are: for a store of your own."""
        return self._mark.bookmark(self.index)

    async def ack(self) -> None:
        """Save in the store that this change and all before it are done. Without a store it does nothing."""
        await self._mark.save(self.index)

    def __repr__(self) -> str:
        """Describe the change without its values, which may be secret."""
        return f"<{self.action} of {self.table}, {self.origin.sequence or f'{self.origin.file}:{self.origin.line}'}>"


class Transaction:
    """The changes of a transaction of the database; or a part of the rows of a dump."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.changes = changes

    @property
    def number(self) -> int:
        """Ordinal of the transaction in the pipeline; 0 for rows of a dump."""
        return self.changes[-1].transaction

    @property
    def is_snapshot(self) -> bool:
        """Whether these are rows of a dump."""
        return not self.changes[-1].origin.sequence

    def bookmark(self) -> Bookmark:
        """Return what is done once this transaction and all before it are: for a store of your own."""
        return self.changes[-1].bookmark()

    async def ack(self) -> None:
        """Save in the store that this transaction and all before it are done. Without a store it does nothing."""
        await self.changes[-1].ack()


def before(late: Sequence[Change], others: Sequence[Change]) -> Transaction:
    """Return changes of a record as a transaction that comes before the other changes, in the midst of which it is."""
    late[0]._mark.move_ahead_of([change._mark for change in others])
    return Transaction(late)
