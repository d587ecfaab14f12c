"""The backfills of a reader: which of them run, and how their chunks are spliced into the stream."""

from model.backfill_changes import KEYLESS, TABLES, Change
from model.backfill_chunks import Chunk
from model.backfill_pipe import Emptied, Event, Mode, Read, Request, Stage, State
from model.backfill_source import Host
from model.backfill_stream import Stream


class Loads:
    """The backfills that are spliced into one stream, at transactions' ends."""

    def __init__(self, stream: Stream, hosts: tuple[Host, Host], rules: frozenset[str]) -> None:
        self._stream, self._hosts, self._rules = stream, hosts, rules
        #: the clients' requests
        self.requests: dict[str, Request] = {}
        self._chunks: dict[str, list[Chunk]] = {table: [] for table in TABLES}

    def splice(self) -> bool:
        """Splice one chunk that belongs here; return whether there was one."""
        for chunks in self._chunks.values():
            if chunks and chunks[0].ready(self._stream.executed, self._rules):
                self._splice(chunks.pop(0))
                return True
        return False

    def obey(self, requests: dict[str, Request]) -> None:
        """Take the clients' requests; pause, resume or cancel running backfills."""
        self.requests = dict(requests)
        for table, request in self.requests.items():
            state = self._stream.states[table]
            if state.stage.ended or (state.heal and "own heal" in self._rules):
                continue
            if request.number > state.request and "superseded" in self._rules:
                self._interrupt(table, Stage.CANCELLED)
            elif request.number == state.request and request.desired is not state.stage:
                self._interrupt(table, request.desired)

    def open(self, table: str, host: int, offset: int) -> None:
        """Open a window at S, the stream's position, for the table's first chunk, or behind a chunk that was read.

        The stream is at this offset in the log of a host.
        """
        chunks = self._chunks[table]
        if chunks and (len(chunks) > 1 or chunks[0].rows is None or chunks[0].final):
            return
        if not chunks and not self._run(table):
            return
        after = chunks[0].last if chunks else self._stream.states[table].last
        chunk = Chunk(table, after, self._stream.executed, offset)
        if "end after view" not in self._rules:
            chunk.end = self._hosts[host].logged
        chunks.append(chunk)

    def select(self, table: str, host: int, limit: int, *, stream_host: int) -> None:
        """SELECT up to `limit` rows for a chunk, on any host; a table without key on the stream's."""
        asked = self._hosts[stream_host if table == KEYLESS else host]
        for chunk in self._chunks[table]:
            if chunk.rows is not None or table not in asked.rows:
                continue
            if table == KEYLESS:
                chunk.select_all(asked, self._stream.executed if "ahead" in self._rules else chunk.start)
            else:
                chunk.select(asked, limit, self._rules)

    def find_end(self, table: str, *, stream_host: int) -> None:
        """Read H for a chunk that was read."""
        for chunk in self._chunks[table]:
            if chunk.host and chunk.end is None:
                host = chunk.host if "end of the view's host" in self._rules else self._hosts[stream_host]
                chunk.end = host.logged

    def collect(self, change: Change) -> None:
        """Collect the keys of a change for the chunks that are being read."""
        chunks = self._chunks[change.table]
        for index, chunk in enumerate(chunks):
            if chunk.collect(change, self._rules):
                del chunks[index : None if "successor" in self._rules else index + 1]
                return

    def requested(self, table: str) -> int:
        """Return the number of the newest request for a table, if it is still to be begun; else 0."""
        request = self.requests.get(table)
        waits = request and request.number > self._stream.states[table].request and request.desired is Stage.RUNNING
        return request.number if request and waits else 0

    def drop(self, table: str) -> None:
        """Drop a table's chunks."""
        self._chunks[table].clear()

    def _interrupt(self, table: str, stage: Stage) -> None:
        """Pause, resume or cancel a backfill."""
        if "interrupt" in self._rules:
            self.drop(table)
        state = self._stream.states[table]._replace(stage=stage)
        if stage is Stage.CANCELLED and state.mode is Mode.FILLING:
            state = state._replace(mode=Mode.PARKED if "cancel parks" in self._rules else Mode.LIVE)
        events: list[Event] = []
        self._stream.move(table, state, events)
        self._stream.append(events)

    def _run(self, table: str) -> bool:
        """Return whether a backfill of the table runs. If one is wanted, begin it."""
        if table not in self._stream.tables:
            return False
        state, clean = self._wanted(table)
        if state.stage is not Stage.RUNNING:
            return False
        parked = state.mode is Mode.PARKED
        clean = (clean or (parked and "TRUNCATE of parked" in self._rules)) and table != KEYLESS
        if clean:
            state = state._replace(mode=Mode.FILLING)
        elif parked and table != KEYLESS:
            state = state._replace(mode=Mode.LIVE)
        if state != self._stream.states[table]:
            events: list[Event] = [Emptied(table)] if clean and "TRUNCATE at S" in self._rules else []
            if "TRUNCATE with state" not in self._rules:
                self._stream.append(events)
                events = []
            self._stream.move(table, state, events)
            self._stream.append(events)
        return True

    def _wanted(self, table: str) -> tuple[State, bool]:
        """Return the state of the table with the backfill that should run now, and whether a client wants TRUNCATE."""
        state, request = self._stream.states[table], self.requests.get(table)
        if not state.stage.ended:
            return state, False
        if request and request.number > state.request and request.desired is Stage.RUNNING:
            return State(state.mode, Stage.RUNNING, request=request.number), request.clean
        if state.mode is Mode.PARKED and state.stage is not Stage.CANCELLED and not state.reported:
            return State(state.mode, Stage.RUNNING, request=state.request, heal=True), True
        return state, False

    def _splice(self, chunk: Chunk) -> None:
        table, state = chunk.table, self._stream.states[chunk.table]
        empties = "TRUNCATE without key" if table == KEYLESS else "TRUNCATE at S"
        events: list[Event] = []
        if table == KEYLESS and empties in self._rules:
            events.append(Emptied(table))
        if table != KEYLESS and empties not in self._rules and state.mode is Mode.FILLING and chunk.after == -1:
            events.append(Emptied(table))
        events += [Read(table, key, value) for key, value in chunk.kept().items()]
        if "one group" not in self._rules:
            self._stream.append(events)
            events = []
        if chunk.final:
            state = state._replace(mode=Mode.LIVE, stage=Stage.DONE)
        self._stream.move(table, state._replace(last=chunk.last), events)
        if "ordinal" not in self._rules:
            self._stream.ordinal -= 1
        self._stream.append(events)
