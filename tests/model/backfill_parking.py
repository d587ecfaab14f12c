"""Which tables of the stream are parked, in the model of backfills."""

from model.backfill_loads import Loads
from model.backfill_pipe import Event, Mode, State
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
