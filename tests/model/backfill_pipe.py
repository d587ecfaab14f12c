"""What passes from reader to Kafka, and the pipe between them, reduced to what `model.world` shows that it guarantees.

A generation starts at what is committed. One reader claims it, and appends groups of events. The newest publisher
commits some of its generation's groups, in order and each as a whole; the rest is lost with the generation.
"""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from model.backfill_source import Change

if TYPE_CHECKING:
    from model.backfill_consumer import Consumer


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


Event = Change | Emptied | Read | Moved


class Group(NamedTuple):
    """The events of one transaction of the pipeline."""

    ordinal: int
    #: the source's transaction after which the stream is, or 0 if it moves no further
    number: int
    events: list[Event]


class Generation:
    def __init__(self, executed: int, ordinal: int) -> None:
        self.executed = executed
        self.ordinal = ordinal
        self.groups: list[Group] = []
        self.claimed = self.lost = False


class Kafka:
    """Requests, and what is committed (see `Consumer`). Fences all publishers but the newest."""

    def __init__(self, consumer: "Consumer") -> None:
        self.consumer = consumer
        self.requests: dict[str, Request] = {}
        self.epoch = 0
        #: lost: no publisher has opened one
        self.generation = Generation(0, 0)
        self.generation.lost = True


class Publisher:
    """Fences its predecessors, and opens a generation."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        kafka.epoch += 1
        self._epoch = kafka.epoch
        self._open()

    def commit(self, groups: int) -> None:
        """Commit this number of groups. They may have left Redis before the generation was lost."""
        if self._epoch == self._kafka.epoch:
            for group in self._generation.groups[:groups]:
                self._kafka.consumer.take(group)
            del self._generation.groups[:groups]

    def renew(self) -> None:
        """Open a generation if the last one is lost."""
        if self._epoch == self._kafka.epoch and self._generation.lost:
            self._open()

    def _open(self) -> None:
        self._kafka.generation.lost = True
        consumer = self._kafka.consumer
        self._generation = self._kafka.generation = Generation(consumer.executed, consumer.ordinal)
