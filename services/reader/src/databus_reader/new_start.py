"""Starts the pipeline anew, with all rows, if changes of any table may be missing from the source (`doubt.all: heal`).

The reader goes on at the end of the binlog, where it parks all tables and loads them again. That is committed together
with the new position, so consumers miss nothing: they get a TRUNCATE, the rows as they are, and later changes.
"""

from databus_binlog import Position
from databus_binlog.session import Session
from databus_changes.catalog import read_names
from databus_core.errors import FatalError
from databus_core.events import Event
from databus_core.kafka_history import read_history
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.rules import first_matches
from databus_reader.parking import Parking

log = get_logger(__name__)


class NewStart:
    """Decides whether a generation starts anew, and parks the tables then."""

    def __init__(self, settings: Settings, parking: Parking) -> None:
        self._settings = settings
        self._parking = parking
        #: why, and the position of the progress that cannot be continued
        self._cause: tuple[FatalError, Position | None] | None = None

    def plan(self, error: FatalError, progress: Progress) -> None:
        """Let the next generation start anew instead of at this progress; raise the error if the reader has to stop."""
        if not error.doubts_all or self._settings.doubt.all != "heal" or progress.position is None:
            raise error
        self._cause = error, progress.position
        metrics.NEW_STARTS.inc()
        text = f"changes may be missing; starting anew at the end of the binlog, all tables are loaded again: {error}"
        log.error(LogEvent.NEW_START, text, **error.fields)

    @property
    def planned(self) -> bool:
        """Whether this generation starts anew."""
        return self._cause is not None

    def progress(self, claimed: Progress) -> Progress:
        """Return the progress to begin a generation with: one without position to start anew."""
        if self._cause and self._cause[1] != claimed.position:  # the new start, or more changes before, are committed
            self._cause = None
        return Progress(transaction=claimed.transaction, snapshot=True) if self._cause else claimed

    async def park(self, session: Session, start: Position) -> list[Event]:
        """If the generation starts anew, park all tables and request backfills. Return the events that record it."""
        if self._cause is None:
            return []
        # A table that was dropped meanwhile cannot be loaded. It stays parked, so it is not silently out of date.
        known = {*(await read_history(self._settings)).tables, *await read_names(session)}
        captures, rules = self._settings.source.captures, self._settings.publisher.rules
        tables = sorted(name for name in known if captures(*name) and first_matches(rules, *name))
        return self._parking.park_all(tables, str(self._cause[0]), (start.file, start.offset))
