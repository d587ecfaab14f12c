"""The publisher of the model of backfills, and the pipe to it, reduced to what `model.world` shows that it guarantees.

A generation starts at what is committed. One reader claims it, and appends groups of events. The newest publisher
commits some of its generation's groups, in order and each as a whole; the rest is lost with the generation.
"""

from model.backfill_changes import NAMES, Change
from model.backfill_consumer import Consumer
from model.backfill_pipe import Emptied, Event, Group, Mode, Moved, Read, Request, Skip, SkipEnded
from model.world import Violated


class Generation:
    def __init__(self, executed: int, ordinal: int) -> None:
        self.executed = executed
        self.ordinal = ordinal
        self.groups: list[Group] = []
        self.claimed = self.lost = False


class Kafka:
    """Requests, and what is committed (see `Consumer`). Fences all publishers but the newest."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.requests: dict[str, Request] = {}
        #: tables that cannot be published now, for instance because their topics cannot be created
        self.refused: set[str] = set()
        #: number of a transaction → request to skip it
        self.skips: dict[int, Skip] = {}
        #: records of the topic of table states, in order: requests to skip, and their ends
        self.topic: list[Skip | SkipEnded] = []
        self.skip_requests = self.epoch = 0
        #: lost: no publisher has opened one
        self.generation = Generation(0, 0)
        self.generation.lost = True

    def skip(self, number: int) -> None:
        """Request that a transaction is skipped."""
        self.skip_requests += 1
        self.skips[number] = Skip(number, self.skip_requests)
        self.topic.append(self.skips[number])

    def commit(self, group: Group) -> None:
        self.consumer.take(group)
        for event in group.events:
            if isinstance(event, SkipEnded):
                self.skips.pop(event.number, None)
                self.topic.append(event)
        if any(skip.request in self.consumer.skipped for skip in self.skips.values()):
            raise Violated(f"a request to skip that has been carried out is still there: {self.skips} after {group}")


class Publisher:
    """Fences its predecessors, and opens a generation. It reports tables that cannot be published."""

    def __init__(self, kafka: Kafka, rules: frozenset[str]) -> None:
        self._kafka, self._rules = kafka, rules
        kafka.epoch += 1
        self._epoch = kafka.epoch
        self._open()

    def commit(self, groups: int) -> None:
        """Commit this number of groups. They may have left Redis before the generation was lost."""
        if self._epoch == self._kafka.epoch:
            pending = self._generation.groups
            for _ in range(min(groups, len(pending))):
                self._kafka.commit(self._publish(pending.pop(0)))
                if self._reported and "report ends" in self._rules:
                    self._generation.lost = True
                    pending.clear()
                    return

    def renew(self) -> None:
        """Open a generation if the last one is lost."""
        if self._epoch == self._kafka.epoch and self._generation.lost:
            self._open()

    def _open(self) -> None:
        self._kafka.generation.lost = True
        consumer = self._kafka.consumer
        self._generation = self._kafka.generation = Generation(consumer.executed, consumer.ordinal)
        self._states = dict(consumer.states)
        #: tables that were reported in this generation
        self._reported: set[str] = set()
        #: reports for the next group
        self._late: list[Event] = []

    def _publish(self, group: Group) -> Group:
        """Return a group as it is committed: with reports instead of what cannot be published."""
        events, self._late = self._late, []
        for event in group.events:
            if isinstance(event, Moved):
                events.append(self._move(event))
            elif not isinstance(event, Change | Emptied | Read) or (isinstance(event, Change) and event.kind in NAMES):
                events.append(event)
            elif event.table in self._kafka.refused:
                self._report(event.table, events)
            else:
                events.append(event)
        return group._replace(events=events)

    def _move(self, event: Moved) -> Moved:
        """Return a record of the reader as it is written: only one that parks a table ends a report."""
        table, state = event
        if table in self._reported and state.mode is not Mode.PARKED and "end of report" in self._rules:
            state = state._replace(mode=Mode.PARKED, reported=True)
        else:
            self._reported.discard(table)
        self._states[table] = state
        return Moved(table, state)

    def _report(self, table: str, events: list[Event]) -> None:
        """Park a table, unless it is reported already."""
        if table not in self._reported:
            self._reported.add(table)
            self._states[table] = self._states[table]._replace(mode=Mode.PARKED, reported=True)
            report = Moved(table, self._states[table])
            (events if "report" in self._rules else self._late).append(report)
