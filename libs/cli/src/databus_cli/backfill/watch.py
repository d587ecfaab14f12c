"""Follow backfills until they have ended, with a line for each of them on a terminal."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from databus_cli.backfill.table import state_of
from databus_core import names
from databus_core.backfill_status import BackfillStatus, status_of
from databus_core.cancellation import raise_if_cancelled
from databus_core.errors import DatabusError
from databus_core.kafka_compacted import following
from databus_core.kafka_table_states import read_states
from databus_core.settings import Settings
from databus_core.table_states import TableStates


async def watch(settings: Settings, ids: set[str]) -> list[BackfillStatus]:
    """Show the progress of backfills until all have ended. Returns how they ended, the oldest first.

    Raises KafkaUnavailable, FatalError if Kafka refuses access, TableStatesCorrupt, and DatabusError if a backfill is
    deleted, because the pipeline is reset.
    """
    states, end = await read_states(settings)
    with _Lines() as lines:
        lines.show(found := _statuses(states, ids))
        async with following(settings.kafka, names.table_states_topic(settings.name), end) as topic:
            while not _all_ended(states, ids):
                raise_if_cancelled()  # an interrupt may come while the consumer starts
                for key, value in await topic.take():
                    states.apply(key, value)
                lines.show(found := _statuses(states, ids))
    return found


def _statuses(states: TableStates, ids: set[str]) -> list[BackfillStatus]:
    if gone := sorted(ids - states.backfills.keys()):
        raise DatabusError(f"there is no longer a backfill {gone[0]}: the pipeline was reset")
    return [status_of(states, states.backfills[each]) for each in sorted(ids)]


def _all_ended(states: TableStates, ids: set[str]) -> bool:
    return not ids & {each.id for each in states.unfinished()}


class _Lines:
    """A line for each backfill, on standard error if that is a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[counts]}", markup=False),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}", markup=False),
            console=console,
            disable=not console.is_terminal,
            redirect_stdout=False,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "_Lines":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, found: list[BackfillStatus]) -> None:
        """Show how far the backfills have come."""
        for each in found:
            counts, state = _counts(each), state_of(each)
            if each.id not in self._tasks:
                self._tasks[each.id] = self._progress.add_task(each.full_name, total=None, counts=counts, state=state)
            # A total of 0 means that it is complete, none that nothing is known yet.
            total = each.rows if each.state == "done" else max(each.estimate, each.rows) or None
            self._progress.update(self._tasks[each.id], completed=each.rows, total=total, counts=counts, state=state)


def _counts(status: BackfillStatus) -> str:
    rate = f", {status.rows_per_second:,.0f} rows/s" if status.rows_per_second is not None else ""
    return f"{status.rows:,} of about {max(status.estimate, status.rows):,} rows{rate}"
