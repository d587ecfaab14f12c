"""The interface of message formats, which encode changes as Kafka records.

One instance encodes what one output publishes in one generation of the pipe. Its methods are called in order: `begin`,
`change` and `end` for each source transaction with changes for it; between transactions `statement` (DDL, without
`begin` and `end`) and `heartbeat`. A change that does not fit into its topic may be repeated in halves. A format may
keep state until the end of a transaction. State that it keeps longer must depend only on configuration and events,
because after a crash all events since the last commit are repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict

from databus.errors import PoisonError
from databus.events import Action, Begin, Row, Table
from databus_binlog import Flavor, Position

Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """One record of a topic."""

    key: bytes | None
    #: None is a tombstone
    value: bytes | None
    headers: Headers = ()
    #: one of the format's own topics (`Format.topics`); None is the topic of the route
    topic: str | None = None


class KeyValueRecords(msgspec.Struct, frozen=True, gc=False):
    """Records without headers for the topic of the route, as lists: an object for each record takes time.

    There must be as many keys as values.
    """

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Record:
        return Record(self.keys[index], self.values[index])

    def __iter__(self) -> Iterator[Record]:
        return map(Record, self.keys, self.values)


class Options(BaseModel):
    """Base class of a format's options, which a route may set (`options`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class MessageSource:
    """The source, as messages describe it."""

    #: of the pipeline
    name: str
    flavor: Flavor
    host: str
    port: int


class ClaimCheck(NamedTuple):
    """The location of a value that its topic does not accept."""

    url: str
    bytes: int
    sha256: str


class TransactionEnd(NamedTuple):
    """The end of a source transaction."""

    #: None if the server logs none, e.g. at the end of a non-transactional engine's changes
    xid: int | None
    #: offset after the transaction's last event
    end: int
    #: row changes of the transaction that were published; an update counts once
    rows: int


class Change(msgspec.Struct, frozen=True, gc=False):  # a struct: one is made for each rows event
    """Rows of one binlog event that go to one partition, as the route filtered them."""

    table: Table
    begin: Begin
    action: Action
    #: offsets of the binlog event
    start: int
    end: int
    #: ordinal of the event's first row in the transaction, from 0. For a format with `emits_frames` or
    #: `needs_transaction_end` it counts the rows that the format gets, for all others the captured rows
    first: int
    #: of the rows, in their transaction; an update has one for both images
    ordinals: Sequence[int]
    #: an update alternates before and after images
    rows: Sequence[Row]
    #: the statement, on the first event of those it caused, if the server logs it
    query: bytes | None = None
    #: set for formats with `needs_transaction_end`
    transaction_end: TransactionEnd | None = None


@dataclass(frozen=True, slots=True)
class DdlStatement:
    """A DDL statement."""

    #: the table after the statement
    table: Table
    begin: Begin
    action: Action
    #: UTF-8, with the table's name qualified
    query: bytes
    start: int
    end: int
    #: the table before the statement; None if it did not exist, or is not known
    before: Table | None = None

    @property
    def sql(self) -> str:
        """Return the query as text. Raises PoisonError if it is not UTF-8."""
        try:
            return self.query.decode()
        except UnicodeDecodeError as error:
            name = f"{self.table.schema}.{self.table.name}"
            raise PoisonError(f"a statement on {name} is not in UTF-8") from error


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Some rows of a table in a dump, in the dump's order."""

    table: Table
    position: Position
    #: when the dump was taken, µs since the epoch
    time_us: int
    rows: Sequence[Row]
    #: whether these are the first and the last rows of the dump, and of the table. A table without rows has one empty
    #: `SnapshotRows`, which is first and last of its table; it is so of the dump only if no table has rows
    first: bool = False
    last: bool = False
    first_of_table: bool = False
    last_of_table: bool = False


OptionsT = TypeVar("OptionsT", bound=Options)


class Format(ABC, Generic[OptionsT]):
    """Encodes changes as records. All methods raise PoisonError for anything that the format cannot express."""

    #: the class of `options`
    options_type: ClassVar[type[Options]] = Options
    #: whether changes need their `transaction_end`: they are then buffered until the end of the transaction
    needs_transaction_end: ClassVar[bool] = False
    #: whether `Change.rows` may be `PackedRows`
    accepts_packed_rows: ClassVar[bool] = False

    #: whether `change` and `statement` may call another service, e.g. a schema registry: see `may_block`
    calls_services: ClassVar[bool] = False

    def __init__(self, source: MessageSource, options: OptionsT) -> None:
        self.source = source
        self.options = options

    @property
    def emits_frames(self) -> bool:
        """Whether `begin` or `end` may return records. Override it if that depends on options: it saves time."""
        return type(self).begin is not Format.begin or type(self).end is not Format.end

    @property
    def emits_heartbeats(self) -> bool:
        """Whether `heartbeat` may return records. Override it if that depends on options: it saves time."""
        return type(self).heartbeat is not Format.heartbeat

    @classmethod
    def check(cls, options: OptionsT) -> None:
        """Check the services that the format depends on, e.g. a schema registry; may block.

        Raises RetryableError if one is unavailable, FatalError if it refuses access.
        """

    def open(self) -> None:
        """Prepare the format's own topics up front; otherwise the first write has to wait for a service. May block."""

    def may_block(self, table: Table) -> bool:
        """Whether encoding a change of this table now would call another service. It then runs in a thread.

        Only formats with `calls_services` are asked.
        """
        return False

    def topics(self) -> Iterable[str]:
        """Name the format's own topics, which have one partition each."""
        return ()

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Make the records that precede a transaction's changes, in each partition that has changes."""
        return ()

    @abstractmethod
    def change(self, change: Change) -> Iterable[Record]:
        """Make the records of rows, all for one partition."""

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Make the records of a statement, for each partition of its table."""
        return ()

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Make the records that follow a transaction's changes, in each partition that has changes."""
        return ()

    def heartbeat(self, time_us: int) -> Iterable[Record]:
        """Make records for the format's own topics which state that everything up to this time was published."""
        return ()

    def claim_check(self, change: Change | DdlStatement, check: ClaimCheck) -> bytes:
        """Make the value that refers to one that is stored elsewhere."""
        table = {"schema": change.table.schema, "table": change.table.name, "action": change.action}
        return msgspec.json.encode(table | {"claim_check": check._asdict()})

    @abstractmethod
    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make the records of a dump's rows."""
