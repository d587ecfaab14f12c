"""The reader of the model of backfills: it passes on a host's log, and parks tables in doubt."""

from typing import NamedTuple

from model.backfill_changes import TABLES, Fate, Transaction
from model.backfill_loads import Loads
from model.backfill_parking import Parking
from model.backfill_pipe import Event, Skip, SkipEnded
from model.backfill_publisher import Generation, Kafka
from model.backfill_source import Source
from model.backfill_stream import Stream
from model.backfill_translation import Translation


class Verdict(NamedTuple):
    """A transaction in doubt is left out, and its tables are parked."""

    tables: list[str]


class Reader:
    """Runs step by step, with the stream at a transaction's end between two steps."""

    def __init__(self, kafka: Kafka, source: Source, host: int, rules: frozenset[str]) -> None:
        """Start on this host's log, and ask for a generation."""
        self._kafka, self._hosts, self._host, self._rules = kafka, source.hosts, host, rules
        self._stream = Stream(kafka)
        self._loads = Loads(self._stream, source.hosts, rules)
        self._loads.requests = dict(kafka.requests)
        self._parking = Parking(self._stream, self._loads, rules)
        self._translation = Translation(self._stream, self._loads, self._parking, rules)
        #: number of a transaction → request to skip it
        self._skips = dict(kafka.skips)
        #: the transaction at which the reader has stopped
        self.stopped: Transaction | None = None
        #: host and offset in its log → verdict on the transaction there
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        #: number of records of the topic of table states that were read
        self._followed = 0
        self._offset = 0
        self.detach(host)

    def attached(self) -> bool:
        """Whether there is a generation to append to; if not, try to claim one."""
        if not self._stream.generation.lost:
            return True
        generation = self._kafka.generation
        if not generation.claimed and not generation.lost:
            self._claim(generation)
        return False

    def detach(self, host: int) -> None:
        """Ask for another generation, to read this host's log in it."""
        self._stream.generation.lost = True
        self._host = host

    def read(self) -> None:
        """Splice one chunk that belongs here, or pass on the log's next transaction."""
        if self._loads.splice():
            return
        transaction = self._next()
        if transaction:
            self._pass(transaction)

    def follow(self) -> None:
        """Read the requests to skip in the topic of table states."""
        for record in self._kafka.topic[self._followed :]:
            match record:
                case Skip():
                    self._skips[record.number] = record
                case SkipEnded():
                    self._skips.pop(record.number, None)
        self._followed = len(self._kafka.topic)

    def obey(self) -> None:
        """Read the clients' requests; pause, resume or cancel running backfills."""
        self._loads.obey(self._kafka.requests)

    def open(self, table: str) -> None:
        """Open a window of a table's backfill here, if it needs one."""
        self._loads.open(table, self._host, self._offset)

    def select(self, table: str, host: int, limit: int) -> None:
        """SELECT up to `limit` rows for a chunk."""
        self._loads.select(table, host, limit, stream_host=self._host)

    def find_end(self, table: str) -> None:
        """Read H for a chunk that was read."""
        self._loads.find_end(table, stream_host=self._host)

    def _claim(self, generation: Generation) -> None:
        generation.claimed = True
        self._stream.begin(generation)
        self._offset = 0
        self._stream.tables = set(self._kafka.consumer.tables)
        if "states" in self._rules:
            self._stream.states = dict(self._kafka.consumer.states)
            self._skips = dict(self._kafka.skips)
        if "generation" in self._rules:
            for table in TABLES:
                self._loads.drop(table)
        self._followed = len(self._kafka.topic)
        if "mark" in self._rules:
            self._take_over()

    def _take_over(self) -> None:
        """Park the tables that the publisher has reported: from now on, this is the reader's doubt."""
        events: list[Event] = []
        for table, state in [*self._stream.states.items()]:
            if state.reported:
                self._parking.park(table, events)
        if events:
            self._stream.append(events)

    def _next(self) -> Transaction | None:
        log = self._hosts[self._host].log
        while self._offset < len(log):
            transaction = log[self._offset]
            if not self._stream.executed & transaction.bit:
                return transaction
            self._offset += 1
        return None

    def _pass(self, transaction: Transaction) -> None:
        """Publish or skip a transaction; leave one in doubt out, in a generation that has not seen its rows."""
        skip = self._skips.get(transaction.number)
        self.stopped = transaction if transaction.stops and not skip else None
        place = (self._host, self._offset) if "offset of verdict" in self._rules else (0, transaction.number)
        verdict = self._verdicts.get(place)
        aborts = transaction.fate is not Fate.COMMITTED and not (skip or verdict) and "abort" in self._rules
        if aborts and not self.stopped and "verdict" in self._rules:
            self._verdicts[place] = Verdict(list({change.table: None for change in transaction.logged}))
        if aborts or self.stopped:
            self.detach(self._host)
            return
        self._offset += 1
        events: list[Event] = []
        if skip:
            self._translation.skip(skip, transaction, events)
            if "skip once" in self._rules:
                del self._skips[skip.number]
        elif verdict:
            for table in verdict.tables:
                self._parking.doubt(table, events)
        else:
            for change in transaction.logged:
                self._translation.publish(change, events)
        counts = transaction.fate is not Fate.HALF or "half" not in self._rules
        self._stream.append(events, transaction.number if counts else 0)
        if skip and "skip ends" not in self._rules:
            self._stream.append([SkipEnded(skip.number)])
