"""The reader of the model of backfills: it passes on a host's log, and splices backfills into it."""

from typing import NamedTuple

from model.backfill_chunks import Chunk
from model.backfill_pipe import Emptied, Event, Generation, Group, Kafka, Mode, Moved, Read, Stage, State
from model.backfill_source import KEYLESS, TABLES, Change, Fate, Source, Transaction


class Verdict(NamedTuple):
    """A transaction in doubt is left out, and its tables are parked."""

    tables: list[str]


class Reader:
    """Runs step by step, with the stream at a transaction's end between two steps."""

    def __init__(self, kafka: Kafka, source: Source, host: int, rules: frozenset[str]) -> None:
        """Start on this host's log, and ask for a generation."""
        self._kafka, self._hosts, self._host, self._rules = kafka, source.hosts, host, rules
        self._generation = kafka.generation
        self._states = dict(kafka.consumer.states)
        self._requests = dict(kafka.requests)
        #: host and offset in its log → verdict on the transaction there
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        self._chunks: dict[str, list[Chunk]] = {table: [] for table in TABLES}
        self._executed = self._ordinal = self._offset = 0
        self.detach(host)

    def attached(self) -> bool:
        """Whether there is a generation to append to; if not, try to claim one."""
        if not self._generation.lost:
            return True
        generation = self._kafka.generation
        if not generation.claimed and not generation.lost:
            self._claim(generation)
        return False

    def detach(self, host: int) -> None:
        """Ask for another generation, to read this host's log in it."""
        self._generation.lost = True
        self._host = host

    def read(self) -> None:
        """Splice one chunk that belongs here, or pass on the log's next transaction."""
        for chunks in self._chunks.values():
            if chunks and chunks[0].ready(self._executed, self._rules):
                self._splice(chunks.pop(0))
                return
        transaction = self._next()
        if transaction:
            self._pass(transaction)

    def obey(self) -> None:
        """Read the clients' requests; pause, resume or cancel running backfills."""
        self._requests = dict(self._kafka.requests)
        for table, request in self._requests.items():
            state = self._states[table]
            if state.stage.ended or (state.heal and "own heal" in self._rules):
                continue
            if request.number > state.request and "superseded" in self._rules:
                self._interrupt(table, Stage.CANCELLED)
            elif request.number == state.request and request.desired is not state.stage:
                self._interrupt(table, request.desired)

    def open(self, table: str) -> None:
        """Open a window at S, the stream's position, for the table's first chunk, or behind a chunk that was read."""
        chunks = self._chunks[table]
        if chunks and (len(chunks) > 1 or chunks[0].rows is None or chunks[0].final):
            return
        if not chunks and not self._run(table):
            return
        after = chunks[0].last if chunks else self._states[table].last
        chunk = Chunk(table, after, self._executed, self._offset)
        if "end after view" not in self._rules:
            chunk.end = self._hosts[self._host].logged
        chunks.append(chunk)

    def select(self, table: str, host: int, limit: int) -> None:
        """SELECT up to `limit` rows for a chunk, on any host; a table without key on the stream's."""
        for chunk in self._chunks[table]:
            if chunk.rows is None and table == KEYLESS:
                chunk.select_all(self._hosts[self._host], self._executed if "ahead" in self._rules else chunk.start)
            elif chunk.rows is None:
                chunk.select(self._hosts[host], limit, self._rules)

    def find_end(self, table: str) -> None:
        """Read H for a chunk that was read."""
        for chunk in self._chunks[table]:
            if chunk.host and chunk.end is None:
                host = chunk.host if "end of the view's host" in self._rules else self._hosts[self._host]
                chunk.end = host.logged

    def _claim(self, generation: Generation) -> None:
        generation.claimed = True
        self._generation = generation
        self._executed, self._ordinal, self._offset = generation.executed, generation.ordinal, 0
        if "states" in self._rules:
            self._states = dict(self._kafka.consumer.states)
        if "generation" in self._rules:
            for chunks in self._chunks.values():
                chunks.clear()

    def _next(self) -> Transaction | None:
        log = self._hosts[self._host].log
        while self._offset < len(log):
            transaction = log[self._offset]
            if not self._executed & transaction.bit:
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
                self._park(table, events)
        else:
            for change in transaction.logged:
                self._publish(change, events)
        counts = transaction.fate is not Fate.HALF or "half" not in self._rules
        self._append(events, transaction.number if counts else 0)

    def _publish(self, change: Change, events: list[Event]) -> None:
        table = change.table
        if change.doubt:
            if "park" in self._rules:
                self._park(table, events)
            return
        if self._states[table].mode is Mode.PARKED and "parked" in self._rules:
            return
        events.append(change)
        if change.kind == "row":
            self._collect(change)
        else:
            self._define(change, events)

    def _collect(self, change: Change) -> None:
        chunks = self._chunks[change.table]
        for index, chunk in enumerate(chunks):
            if chunk.collect(change, self._rules):
                del chunks[index : None if "successor" in self._rules else index + 1]
                return

    def _define(self, change: Change, events: list[Event]) -> None:
        """Handle DDL on a table. A table without key is spliced in where its view was taken, so DDL does not matter."""
        state = self._states[change.table]
        if "DDL" in self._rules and change.table != KEYLESS:
            self._chunks[change.table].clear()
        if change.kind == "key change" and "key change" in self._rules and not state.stage.ended:
            self._move(change.table, state._replace(last=-1), events)

    def _park(self, table: str, events: list[Event]) -> None:
        state = self._states[table]
        if state.mode is Mode.PARKED:
            return
        if "park drops" in self._rules:
            self._chunks[table].clear()
        if state.stage.ended:
            state = State(request=state.request if "once" in self._rules else 0)
        elif "start over" in self._rules:
            state = state._replace(last=-1)
        self._move(table, state._replace(mode=Mode.PARKED), events)

    def _interrupt(self, table: str, stage: Stage) -> None:
        """Pause, resume or cancel a backfill."""
        if "interrupt" in self._rules:
            self._chunks[table].clear()
        state = self._states[table]._replace(stage=stage)
        if stage is Stage.CANCELLED and state.mode is Mode.FILLING:
            state = state._replace(mode=Mode.PARKED if "cancel parks" in self._rules else Mode.LIVE)
        events: list[Event] = []
        self._move(table, state, events)
        self._append(events)

    def _run(self, table: str) -> bool:
        """Return whether a backfill of the table runs. If one is wanted, begin it."""
        state, clean = self._wanted(table)
        if state.stage is not Stage.RUNNING:
            return False
        parked = state.mode is Mode.PARKED
        clean = (clean or (parked and "TRUNCATE of parked" in self._rules)) and table != KEYLESS
        if clean:
            state = state._replace(mode=Mode.FILLING)
        elif parked and table != KEYLESS:
            state = state._replace(mode=Mode.LIVE)
        if state != self._states[table]:
            events: list[Event] = [Emptied(table)] if clean and "TRUNCATE at S" in self._rules else []
            if "TRUNCATE with state" not in self._rules:
                self._append(events)
                events = []
            self._move(table, state, events)
            self._append(events)
        return True

    def _wanted(self, table: str) -> tuple[State, bool]:
        """Return the state of the table with the backfill that should run now, and whether a client wants TRUNCATE."""
        state, request = self._states[table], self._requests.get(table)
        if not state.stage.ended:
            return state, False
        if request and request.number > state.request and request.desired is Stage.RUNNING:
            return State(state.mode, Stage.RUNNING, request=request.number), request.clean
        if state.mode is Mode.PARKED and state.stage is not Stage.CANCELLED:
            return State(state.mode, Stage.RUNNING, request=state.request, heal=True), True
        return state, False

    def _splice(self, chunk: Chunk) -> None:
        table, state = chunk.table, self._states[chunk.table]
        empties = "TRUNCATE without key" if table == KEYLESS else "TRUNCATE at S"
        events: list[Event] = []
        if table == KEYLESS and empties in self._rules:
            events.append(Emptied(table))
        if table != KEYLESS and empties not in self._rules and state.mode is Mode.FILLING and chunk.after == -1:
            events.append(Emptied(table))
        events += [Read(table, key, value) for key, value in chunk.kept().items()]
        if "one group" not in self._rules:
            self._append(events)
            events = []
        if chunk.final:
            state = state._replace(mode=Mode.LIVE, stage=Stage.DONE)
        self._move(table, state._replace(last=chunk.last), events)
        if "ordinal" not in self._rules:
            self._ordinal -= 1
        self._append(events)

    def _move(self, table: str, state: State, events: list[Event]) -> None:
        self._states[table] = state
        events.append(Moved(table, state))

    def _append(self, events: list[Event], number: int = 0) -> None:
        self._ordinal += 1
        if number:
            self._executed |= 1 << number
        self._generation.groups.append(Group(self._ordinal, number, events))
