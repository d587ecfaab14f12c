"""The reader of the model of backfills: it passes on a host's log, and parks tables in doubt."""

from typing import NamedTuple

from model.backfill_changes import KEYLESS, TABLES, UNCAPTURED, Change, Fate, Transaction
from model.backfill_loads import Loads
from model.backfill_parking import Parking
from model.backfill_pipe import Event, Skip, SkipEnded, Skipped
from model.backfill_publisher import Generation, Kafka
from model.backfill_source import Source
from model.backfill_stream import Stream


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
        #: number of a transaction → request to skip it
        self._skips = dict(kafka.skips)
        #: the transaction at which the reader has stopped
        self.stopped: Transaction | None = None
        #: host and offset in its log → verdict on the transaction there
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        #: tables that the publisher has reported, until they are taken over
        self._reports: list[str] = []
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
        """Read the topic of table states, and take over what the publisher has reported."""
        for record in self._kafka.topic[self._followed :]:
            match record:
                case str():
                    self._reports.append(record)
                case Skip():
                    self._skips[record.number] = record
                case SkipEnded():
                    self._skips.pop(record.number, None)
        self._followed = len(self._kafka.topic)
        self._take_over()

    def obey(self) -> None:
        """Read the clients' requests; pause, resume or cancel running backfills."""
        self._take_over()
        self._loads.obey(self._kafka.requests)

    def open(self, table: str) -> None:
        """Open a window of a table's backfill here, if it needs one."""
        self._take_over()
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
        found = [table for table, state in self._stream.states.items() if state.reported]
        self._reports = found if "mark" in self._rules else []
        self._followed = len(self._kafka.topic)

    def _take_over(self) -> None:
        """Park the tables that the publisher has reported: from now on, this is the reader's doubt."""
        for table in self._reports:
            events: list[Event] = []
            self._parking.park(table, events)
            self._stream.append(events)
        self._reports = []

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
            self._skip(skip, transaction, events)
        elif verdict:
            for table in verdict.tables:
                self._parking.doubt(table, events)
        else:
            for change in transaction.logged:
                self._publish(change, events)
        counts = transaction.fate is not Fate.HALF or "half" not in self._rules
        self._stream.append(events, transaction.number if counts else 0)
        if skip and "skip ends" not in self._rules:
            self._stream.append([SkipEnded(skip.number)])

    def _skip(self, skip: Skip, transaction: Transaction, events: list[Event]) -> None:
        """Let the publisher make dead letters of a transaction's rows; park its tables at its end."""
        events.append(Skipped(skip, transaction))
        doubts = [change.table for change in transaction.logged if change.doubt]
        if transaction.fate is not Fate.COMMITTED:
            doubts = [change.table for change in transaction.logged] or [*self._stream.tables]
        rows: list[str] = []
        for change in transaction.logged:
            is_row = change.kind == "row"
            if is_row and not change.doubt and not self._parking.leaves_out(change.table):
                rows.append(change.table)
            if not change.doubt and ("letters" if is_row else "skip DDL") in self._rules:
                self._publish(change, events)
        parked = (rows if "skip parks" in self._rules else []) + (doubts if "skip doubts" in self._rules else [])
        for table in parked:
            self._parking.doubt(table, events)
        if "skip once" in self._rules:
            del self._skips[skip.number]
        if "skip ends" in self._rules:
            events.append(SkipEnded(skip.number))

    def _publish(self, change: Change, events: list[Event]) -> None:
        table = change.table
        if change.kind in ("create", "drop", "rename"):
            self._name(change, events)
            return
        if change.doubt:
            if "park" in self._rules:
                self._parking.doubt(table, events)
            return
        if self._parking.leaves_out(table):
            return
        events.append(change)
        if change.kind == "row":
            self._loads.collect(change)
        else:
            self._define(change, events)

    def _define(self, change: Change, events: list[Event]) -> None:
        """Handle DDL on a table. A table without key is spliced in where its view was taken, so DDL does not matter."""
        state = self._stream.states[change.table]
        if "DDL" in self._rules and change.table != KEYLESS:
            self._loads.drop(change.table)
        if change.kind == "key change" and "key change" in self._rules and not state.stage.ended:
            self._stream.move(change.table, state._replace(last=-1), events)

    def _name(self, change: Change, events: list[Event]) -> None:
        """Create, drop or rename tables. That they are gone is published, even if they are parked."""
        moved = [rename for rename in change.renames if self._parking.is_published(rename, change.renames)]
        events.append(change._replace(renames=tuple(moved)))
        if "DDL" in self._rules:
            for table in change.names - {KEYLESS, UNCAPTURED}:
                self._loads.drop(table)
        tables = self._stream.tables
        if change.kind == "create":
            tables.add(change.table)
            return
        if "statement" not in self._rules:
            self._stream.append(events[:])
            events.clear()
        if change.kind == "drop":
            tables.remove(change.table)
            self._parking.gone(change.table, events)
        else:
            tables -= {old for old, _ in change.renames}
            tables |= {new for _, new in change.renames} - {UNCAPTURED}
            self._parking.renamed(change.renames, events)
