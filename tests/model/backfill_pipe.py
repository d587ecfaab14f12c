"""What passes from reader to Kafka in the model of backfills."""

from enum import Enum
from typing import NamedTuple

from model.backfill_changes import Change, Transaction


class Mode(Enum):
    #: the table's changes are published
    LIVE = "live"
    #: they are not, because of a doubt
    PARKED = "parked"
    #: they are; the rows from before TRUNCATE are being backfilled
    FILLING = "filling"


class Stage(Enum):
    NONE = "none"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"

    @property
    def ended(self) -> bool:
        return self in (Stage.NONE, Stage.CANCELLED, Stage.DONE)


class State(NamedTuple):
    """The state of a table and of its backfill."""

    mode: Mode = Mode.LIVE
    stage: Stage = Stage.NONE
    #: last key that is backfilled; -1 if none is
    last: int = -1
    #: number of the newest request that was begun; 0 if none was
    request: int = 0
    #: whether the reader itself began the backfill, to heal a parked table
    heal: bool = False
    #: whether the publisher parked the table, and the reader has not taken the doubt over yet
    reported: bool = False


class Request(NamedTuple):
    """What a client wants to happen with a table."""

    number: int
    #: RUNNING, PAUSED or CANCELLED
    desired: Stage
    #: whether to begin with TRUNCATE
    clean: bool


class Emptied(NamedTuple):
    """The TRUNCATE with which a backfill begins."""

    table: str


class Read(NamedTuple):
    """A row that a SELECT returned; for a table without key, its key is its value and its value the number of rows."""

    table: str
    key: int
    value: int


class Moved(NamedTuple):
    """A table's new state."""

    table: str
    state: State


class Skip(NamedTuple):
    """What a client wants to be skipped: the transaction with this number."""

    number: int
    #: number of the request
    request: int


class Skipped(NamedTuple):
    """The rows in this group, all of a transaction, are dead letters."""

    skip: Skip
    transaction: Transaction


class SkipEnded(NamedTuple):
    """A transaction is skipped: the request is deleted."""

    number: int


Event = Change | Emptied | Read | Moved | Skipped | SkipEnded


class Group(NamedTuple):
    """The events of one transaction of the pipeline."""

    ordinal: int
    #: the source's transaction after which the stream is, or 0 if it moves no further
    number: int
    events: list[Event]
