"""Which tables of the stream are parked, in the model of backfills."""

from model.backfill_changes import UNCAPTURED, Renames
from model.backfill_loads import Loads
from model.backfill_pipe import Event, Mode, Stage, State
from model.backfill_stream import Stream


class Parking:
    """Parks tables: nothing of them is published until they are loaded again."""

    def __init__(self, stream: Stream, loads: Loads, rules: frozenset[str]) -> None:
        self._stream, self._loads, self._rules = stream, loads, rules

    def leaves_out(self, table: str) -> bool:
        """Return whether the changes of a table are left out."""
        return self._stream.states[table].mode is Mode.PARKED and "parked" in self._rules

    def doubt(self, table: str, events: list[Event]) -> None:
        """Park a table in doubt, unless it is parked."""
        if self._stream.states[table].mode is not Mode.PARKED:
            self.park(table, events)

    def is_published(self, rename: tuple[str, str], renames: Renames) -> bool:
        """Return whether consumers learn of one of several renames.

        For a parked table they may not. At least they learn that there is no table of the old name any more.
        """
        old, _ = rename
        return not self.leaves_out(old) or old not in {new for _, new in renames}

    def park(self, table: str, events: list[Event]) -> None:
        """Park a table, and let a backfill load it from the first row."""
        state = self._stream.states[table]
        if "park drops" in self._rules:
            self._loads.drop(table)
        if state.stage.ended:
            state = State(request=state.request if "once" in self._rules else 0)
        elif "start over" in self._rules:
            state = state._replace(last=-1)
        self._stream.move(table, state._replace(mode=Mode.PARKED, reported=False), events)

    def gone(self, table: str, events: list[Event]) -> None:
        """End the doubt about a table that was dropped, and its backfill."""
        if "gone" in self._rules:
            self._loads.drop(table)
            request = self._loads.requested(table) or self._stream.states[table].request
            self._stream.move(table, State(request=request), events)

    def renamed(self, renames: Renames, events: list[Event]) -> None:
        """Let doubts and backfills follow the tables that one statement renames."""
        before = dict(self._stream.states)
        waiting = {old for old, _ in renames if self._loads.requested(old)}
        taken = {new for _, new in renames}
        for old, _ in renames:
            if old in taken:
                self._stream.move(old, self._stay(before[old]), events)
            else:
                self.gone(old, events)
        for old, new in renames:
            if new != UNCAPTURED:
                state = self._follow(before[old], self._stream.states[new], waits=old in waiting)
                self._stream.move(new, state, events)

    def _stay(self, state: State) -> State:
        """Return the state of a name that another table takes."""
        if state.stage is Stage.DONE:
            state = state._replace(stage=Stage.NONE)
        elif not state.stage.ended and "taken by another" in self._rules:
            state = state._replace(last=-1)
        return state if "doubt of the name" in self._rules else state._replace(mode=Mode.LIVE)

    def _follow(self, old: State, new: State, *, waits: bool) -> State:
        """Return the state of a table's new name, whose state is `new`; `waits`: whether a load was requested."""
        if old.mode is not Mode.LIVE and "rename in doubt" in self._rules:
            ended = Stage.CANCELLED if old.stage is Stage.CANCELLED else Stage.NONE
            new = new._replace(mode=Mode.PARKED, stage=ended if new.stage.ended else new.stage)
        if (waits or not old.stage.ended) and "rename while filling" in self._rules:
            new = new._replace(stage=Stage.RUNNING, last=-1, heal=True)
        return new
