"""The interface of message formats, which encode changes as Kafka records.

One instance encodes what one routing rule publishes in one generation (see `databus_core.events`) or in a series of
binlog files, or the rows of one dump. For each source transaction of which the rule publishes changes, `begin`,
`change` and `end` are called in this order (`begin` and `end` only with `emits_frames` or `needs_transaction_end`).
Between transactions, `statement` (DDL, without `begin` and `end`), `snapshot` (rows of a backfill) and `heartbeat` are
called. For a dump only `snapshot` is called.

If some rows of a change cannot be encoded, or if the topic does not accept the change's record, `change` or `snapshot`
may be called again with one half of the rows and then with the other. A format may keep state until the end of a
transaction. After a crash, a new instance encodes all events since the last committed progress again. So state that is
kept longer must depend only on configuration and events.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict

from databus_binlog import Flavor, Position
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Row, Table
from databus_messages.sequence import Ordinals
from databus_wire.rows_writer import RowsWriter

Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """One record of a topic."""

    key: bytes | None
    #: None: the record is a tombstone
    value: bytes | None
    headers: Headers = ()
    #: one of the format's own topics (`Format.topics`). None: the topic of the route; the record is then written to
    #: each partition of its message
    topic: str | None = None
    #: which of the change's rows the record is about, from 0; None if each row has as many records as the others
    row: int | None = None


class KeyValueRecords(msgspec.Struct, frozen=True, gc=False):
    """Records for the topic of the route, as two lists, because making `Record` objects takes time.

    Their only header is their sequence. There must be as many keys as values, and each row must have as many records as
    the others, or each record as many rows.
    """

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    #: formats leave it out: see `databus_messages.message.Message.sequenced`
    ordinals: Ordinals | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Record:
        return Record(self.keys[index], self.values[index], self._headers(index))

    def __iter__(self) -> Iterator[Record]:
        return map(Record, self.keys, self.values, map(self._headers, range(len(self))))

    def _headers(self, index: int) -> Headers:
        return () if self.ordinals is None else (self.ordinals.header(index, len(self)),)


class Options(BaseModel):
    """Base class of a format's options: `publisher.options`, or `options` of a routing rule."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class MessageSource:
    """The source, as messages describe it."""

    #: name of the pipeline
    name: str
    flavor: Flavor
    host: str
    port: int


class ClaimCheck(NamedTuple):
    """The location, size and checksum of a value that is stored elsewhere, because the topic rejects its record."""

    url: str
    bytes: int
    sha256: str


class TransactionEnd(NamedTuple):
    """The end of a source transaction."""

    #: the transaction's id in the storage engine; None if none is logged, e.g. for a non-transactional engine
    xid: int | None
    #: offset in the binlog file after the transaction's last event
    end: int
    #: number of the transaction's row changes that the rule publishes; an update counts once
    rows: int
    #: offset in the binlog file at which the transaction's last event starts
    start: int = 0


class SnapshotMark(NamedTuple):
    """What rows of a backfill have besides those of a change; see `SnapshotRows`."""

    #: when the rows were read, in µs since the epoch
    time_us: int
    initial: bool = False
    first: bool = False
    last: bool = False
    first_of_table: bool = False
    last_of_table: bool = False

    def of_part(self, *, first: bool, last: bool) -> "SnapshotMark":
        """Return the mark of some of the rows, which may include the first or the last of them."""
        return self._replace(
            first=self.first and first,
            last=self.last and last,
            first_of_table=self.first_of_table and first,
            last_of_table=self.last_of_table and last,
        )


class Change(msgspec.Struct, frozen=True, gc=False):  # a struct, because one is made for each rows event
    """Rows of one binlog event that are published to one partition with one action, after the route's filter."""

    table: Table
    begin: Begin
    action: Action
    #: offset in the binlog file at which the event starts
    start: int
    #: offset in the binlog file at which the event ends
    end: int
    #: ordinal of the event's first row in the transaction, from 0. Ordinals count the rows that the format gets, if it
    #: has `emits_frames` or `needs_transaction_end`; otherwise they count all captured rows
    first: int
    #: ordinals of the rows in the transaction; the two images of an update have one ordinal
    ordinals: Sequence[int]
    #: row images, whose values are canonical text (docs/reference/values.md); in an update, before and after images
    #: alternate
    rows: Sequence[Row]
    #: the SQL statement that changed the rows, set only in its first event; None also if not logged or hidden by a rule
    query: bytes | None = None
    #: set if the format has `needs_transaction_end`
    transaction_end: TransactionEnd | None = None
    #: number of the table in the binlog event
    table_id: int = 0
    #: whether values are ABSENT, because the binlog does not contain them (`databus_core.events.is_absent`)
    partial: bool = False
    #: why the rows cannot be published; they become dead letters. Empty if they can
    refusal: str = ""
    #: set if a backfill loaded the rows: `Format.snapshot` encodes them, not `change`. There may be no rows, but marks
    snapshot: SnapshotMark | None = None
    #: ordinals of the rows among all captured rows of the transaction; None if these are `ordinals`
    captured: Sequence[int] | None = None

    @property
    def sequences(self) -> Ordinals:
        """The sequences of the rows; if there are none, of the row that would be next."""
        rows = self.ordinals if self.captured is None else self.captured
        return Ordinals(self.begin.transaction, rows or (self.first,))


@dataclass(frozen=True, slots=True)
class DdlStatement:
    """A DDL statement."""

    #: the table after the statement; if that drops or renames the table, as it was before. For a statement on a
    #: database: a table without name and columns, whose `charset` is that of the database; empty if it is not known
    table: Table
    begin: Begin
    action: Action
    #: the statement, normally in UTF-8 (see `sql`); if it names the table, the name is qualified by the schema
    query: bytes
    #: offset in the binlog file at which the event starts
    start: int
    #: offset in the binlog file at which the event ends
    end: int
    #: the table before the statement; None if it did not exist, is not known, or was not published by this rule
    before: Table | None = None
    #: the published tables that are dropped with a database
    dropped: Sequence[Table] = ()
    #: ordinal of the transaction's next row among all captured rows
    next_row: int = 0

    @property
    def is_on_database(self) -> bool:
        """Whether this is CREATE, ALTER or DROP DATABASE."""
        return not self.table.name

    @property
    def sequences(self) -> Ordinals:
        """The sequence of the statement."""
        return Ordinals(self.begin.transaction, (self.next_row,))

    @property
    def sql(self) -> str:
        """Return the query as text. Raises PoisonError if it is not UTF-8."""
        try:
            return self.query.decode()
        except UnicodeDecodeError as error:
            raise PoisonError(f"a statement on {self.table.full_name} is not in UTF-8") from error


@dataclass(frozen=True, slots=True)
class BackfilledRows:
    """What `SnapshotRows` of a backfill have besides those of a dump."""

    #: ordinal of the transaction in which the stream has the rows
    transaction: int
    #: ordinals of the rows in this transaction
    ordinals: Sequence[int]
    #: whether the rows belong to the snapshot with which the pipeline begins; otherwise they are incremental
    initial: bool


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Some rows of a table in a dump, in the dump's order, or rows that a backfill loaded."""

    table: Table
    #: the state that the rows have; in a backfill, the position in the binlog where the stream has the rows
    position: Position
    #: when the dump was requested or the backfill read the rows, µs since the epoch
    time_us: int
    #: PackedRows only if the format has `accepts_packed_rows`
    rows: Sequence[Row]
    #: whether the rows include the first row of the dump, or of the snapshot with which the pipeline begins: the first
    #: that is read. If no table has rows: whether the table is the first that is read
    first: bool = False
    #: whether the rows include the last row of the dump, or of the snapshot with which the pipeline begins: the last
    #: that is read. If no table has rows: whether the table is the last that is read
    last: bool = False
    #: whether these are the first rows of the table; true for the one `SnapshotRows` of a table without rows
    first_of_table: bool = False
    #: whether these are the last rows of the table; true for the one `SnapshotRows` of a table without rows
    last_of_table: bool = False
    #: None for rows of a dump
    backfill: BackfilledRows | None = None

    @property
    def transaction(self) -> int:
        """The ordinal of the transaction in which the stream has the rows; 0 for rows of a dump."""
        return self.backfill.transaction if self.backfill else 0

    @property
    def is_incremental(self) -> bool:
        """Whether a backfill loaded the rows into a pipeline that had begun without them."""
        return self.backfill is not None and not self.backfill.initial


OptionsT = TypeVar("OptionsT", bound=Options)


class Format(ABC, Generic[OptionsT]):
    """Encodes changes as records. Methods that make records raise PoisonError for what the format cannot express."""

    #: the class of `options`
    options_type: ClassVar[type[Options]] = Options
    #: whether `Change.transaction_end` must be set: changes are then buffered until the end of their transaction
    needs_transaction_end: ClassVar[bool] = False
    #: whether `Change.rows` may be `PackedRows`
    accepts_packed_rows: ClassVar[bool] = False
    #: whether the format can express ABSENT; if not, changes with `Change.partial` become dead letters
    accepts_absent: bool = False
    #: whether `change` and `statement` may call another service, e.g. a schema registry: see `may_block`
    calls_services: ClassVar[bool] = False
    #: whether to call `statement` for DDL on databases; if not, a dropped database is a DROP of each of its tables
    has_database_statements: bool = False
    #: the format's own topic for DDL on databases; None: the topics in `databus_messages.routing.databases`
    database_topic: str | None = None

    #: whether the DROP of a table that was not known is left out; by default it has a message, because a schema history
    #: that began after the table was created may lack it
    omits_unknown_drops: ClassVar[bool] = False

    def __init__(self, source: MessageSource, options: OptionsT) -> None:
        self.source = source
        self.options = options

    @property
    def emits_frames(self) -> bool:
        """Whether to call `begin` and `end`; by default, if one is overridden. Override this if it depends on options.

        With `needs_transaction_end` they are called in any case.
        """
        return type(self).begin is not Format.begin or type(self).end is not Format.end

    @property
    def emits_heartbeats(self) -> bool:
        """Whether to call `heartbeat`; by default, if it is overridden. Override this if it depends on options."""
        return type(self).heartbeat is not Format.heartbeat

    @classmethod
    def check(cls, options: OptionsT) -> None:
        """Check the services that the format depends on, e.g. a schema registry; may block.

        Raises RetryableError if a service is unavailable, FatalError if a service refuses access.
        """

    def open(self) -> None:
        """Prepare the format's own topics, so that their first records need not wait for a service. May block."""

    def may_block(self, table: Table) -> bool:
        """Whether encoding a change or statement of this table may now call a service; if so, it runs in a thread.

        Called only if the format has `calls_services`.
        """
        return False

    def topics(self) -> Iterable[str]:
        """Name the format's own topics, which have one partition each."""
        return ()

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Make the records that precede a transaction's changes.

        Those for the topic of the route are written to each partition with changes.
        """
        return ()

    @abstractmethod
    def change(self, change: Change) -> Iterable[Record]:
        """Make the records of a change."""

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Make the records of a statement on a table or, with `has_database_statements`, on a database.

        Those for the topic of the route are written to each partition that may have rows of the table, including rows
        that were published when the table had another key.
        """
        return ()

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Make the records that follow a transaction's changes.

        Those for the topic of the route are written to each partition with changes.
        """
        return ()

    def rows_writer(self, table: Table) -> RowsWriter | None:
        """Return a compiled writer of the records that `change` makes of a table's rows; None if there is none.

        It is used for changes without ABSENT values, in transactions for which `begin` and `end` make no record.
        """
        return None

    def heartbeat(self, time_us: int) -> Iterable[Record]:
        """Make records for the format's own topics, to report that all changes up to this time are published."""
        return ()

    def claim_check(self, change: Change | DdlStatement, check: ClaimCheck) -> bytes:
        """Make the value that is published in place of one that is stored elsewhere; it contains the claim check."""
        table = {"schema": change.table.schema, "table": change.table.name, "action": change.action}
        return msgspec.json.encode(table | {"claim_check": check._asdict()})

    @abstractmethod
    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make the records of rows of a dump or backfill."""
