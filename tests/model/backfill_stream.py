"""What a reader of the model of backfills sends in a generation: groups of events, and in them the states of tables."""

from model.backfill_pipe import Event, Group, Moved, State
from model.backfill_publisher import Generation, Kafka


class Stream:
    """The place that the stream has reached, and the states of the tables there."""

    def __init__(self, kafka: Kafka) -> None:
        self.generation = kafka.generation
        self.states = dict(kafka.consumer.states)
        #: the tables that exist there
        self.tables = set(kafka.consumer.tables)
        #: the transactions that the stream has passed
        self.executed = 0
        self.ordinal = 0

    def begin(self, generation: Generation) -> None:
        """Continue where a generation starts."""
        self.generation = generation
        self.executed, self.ordinal = generation.executed, generation.ordinal

    def move(self, table: str, state: State, events: list[Event]) -> None:
        self.states[table] = state
        events.append(Moved(table, state))

    def append(self, events: list[Event], number: int = 0) -> None:
        self.ordinal += 1
        if number:
            self.executed |= 1 << number
        self.generation.groups.append(Group(self.ordinal, number, events))
