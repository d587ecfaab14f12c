"""The reader of the model of backfills: it passes on a host's log, and parks tables in doubt."""

from typing import NamedTuple

from model.backfill_loads import Loads
from model.backfill_pipe import Event, Mode, State
from model.backfill_publisher import Generation, Kafka
from model.backfill_source import KEYLESS, TABLES, Change, Fate, Source, Transaction
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
        #: host and offset in its log → verdict on the transaction there
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        #: tables that the publisher has reported, until they are taken over
        self._reports: list[str] = []
        #: number of reports that were read
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
        self._reports += self._kafka.reports[self._followed :]
        self._followed = len(self._kafka.reports)
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
        if "states" in self._rules:
            self._stream.states = dict(self._kafka.consumer.states)
        if "generation" in self._rules:
            for table in TABLES:
                self._loads.drop(table)
        found = [table for table, state in self._stream.states.items() if state.reported]
        self._reports = found if "mark" in self._rules else []
        self._followed = len(self._kafka.reports)

    def _take_over(self) -> None:
        """Park the tables that the publisher has reported: from now on, this is the reader's doubt."""
        for table in self._reports:
            events: list[Event] = []
            self._park(table, events)
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
        """Publish a transaction; if it is in doubt, park its tables, in a generation that has not seen its rows."""
        key = (self._host, self._offset) if "offset of verdict" in self._rules else (0, transaction.number)
        verdict = self._verdicts.get(key)
        if verdict is None and transaction.fate is not Fate.COMMITTED and "abort" in self._rules:
            if "verdict" in self._rules:
                self._verdicts[key] = Verdict(list({change.table: None for change in transaction.logged}))
            self.detach(self._host)
            return
        self._offset += 1
        events: list[Event] = []
        if verdict:
            for table in verdict.tables:
                self._doubt(table, events)
        else:
            for change in transaction.logged:
                self._publish(change, events)
        counts = transaction.fate is not Fate.HALF or "half" not in self._rules
        self._stream.append(events, transaction.number if counts else 0)

    def _publish(self, change: Change, events: list[Event]) -> None:
        table = change.table
        if change.doubt:
            if "park" in self._rules:
                self._doubt(table, events)
            return
        if self._stream.states[table].mode is Mode.PARKED and "parked" in self._rules:
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

    def _doubt(self, table: str, events: list[Event]) -> None:
        """Park a table in doubt, unless it is parked."""
        if self._stream.states[table].mode is not Mode.PARKED:
            self._park(table, events)

    def _park(self, table: str, events: list[Event]) -> None:
        state = self._stream.states[table]
        if "park drops" in self._rules:
            self._loads.drop(table)
        if state.stage.ended:
            state = State(request=state.request if "once" in self._rules else 0)
        elif "start over" in self._rules:
            state = state._replace(last=-1)
        self._stream.move(table, state._replace(mode=Mode.PARKED, reported=False), events)
