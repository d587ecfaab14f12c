"""The steps from which hypothesis builds stories."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from model.at_least_once import AtLeastOnceWorld
from model.turns import Fate
from model.world import World

#: which of the two readers or publishers
_places = st.integers(0, 1)
#: requests that an actor sends in one step
_turns = st.integers(0, 20)
#: events in an entry
_sizes = st.integers(1, 5)
_fates = st.sampled_from(Fate)
#: limit for the source's transactions at the start of a story; for the whole story it is twice as high
_TRANSACTIONS = 8
#: turns before the source has transactions; 20 are usually enough to commit the first progress
_start_turns = st.sampled_from([20, 5, 20, 20])


class HandOver(RuleBasedStateMachine):
    """Exactly-once delivery in a world in which any fault may happen at any request."""

    def __init__(self) -> None:
        super().__init__()
        self.world = self.make_world()

    def make_world(self) -> World:
        return World()

    @initialize(rows=st.lists(st.integers(0, 3), min_size=4, max_size=_TRANSACTIONS), size=_sizes, turns=_start_turns)
    def a_pipeline_starts(self, rows: list[int], size: int, turns: int) -> None:
        """Start a reader and a publisher, and commit transactions of the source."""
        self.world.start_reader(0, size=size)
        self.world.run_all(turns)
        self.world.source.rows += rows

    @rule(rows=st.integers(0, 3), then=_turns)
    def the_source_commits(self, rows: int, then: int) -> None:
        if len(self.world.source.rows) < 2 * _TRANSACTIONS:
            self.world.source.rows.append(rows)
        self.world.run_all(then)

    @rule(place=_places, host=st.integers(0, 1), size=_sizes, then=_turns)
    def a_reader_starts(self, place: int, host: int, size: int, then: int) -> None:
        self.world.start_reader(place, host=host, size=size)
        self.world.run_all(then)

    @rule(place=_places, then=_turns)
    def a_publisher_starts(self, place: int, then: int) -> None:
        self.world.start_publisher(place)
        self.world.run_all(then)

    @rule(place=_places, turns=_turns, fate=_fates)
    def a_reader_continues_alone(self, place: int, turns: int, fate: Fate) -> None:
        self.world.run(self.world.readers[place], turns, fate)

    @rule(place=_places, turns=_turns, fate=_fates)
    def a_publisher_continues_alone(self, place: int, turns: int, fate: Fate) -> None:
        self.world.run(self.world.publishers[place], turns, fate)

    @rule(then=_turns)
    def redis_is_copied(self, then: int) -> None:
        self.world.copy_to_replica()
        self.world.run_all(then)

    @rule(everything=st.booleans(), then=_turns)
    def redis_loses_data(self, everything: bool, then: int) -> None:
        if everything:
            self.world.redis.flush()
        else:
            self.world.fail_over_redis()
        self.world.run_all(then)

    def teardown(self) -> None:
        try:
            self.world.drain()
        finally:
            self.world.end()


class HandOverAtLeastOnce(HandOver):
    """At-least-once delivery, without Kafka's transactions."""

    def make_world(self) -> World:
        return AtLeastOnceWorld()


def explore(machine: type[RuleBasedStateMachine], stories: int, *, steps: int = 50, shrink: bool = True) -> None:
    """Try this number of stories, the same ones in every run.

    Raises Violated with the story in a note; with `shrink`, possibly an ExceptionGroup of several Violated.
    """
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=stories,
            stateful_step_count=steps,
            derandomize=True,
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
