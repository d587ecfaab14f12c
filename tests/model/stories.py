"""Short stories that need one of the rules, which a search would take long to find."""

from collections.abc import Callable

from model.at_least_once import AtLeastOnceWorld
from model.world import World

#: one row each, so the first entry of four events after a generation's start is its first transaction
_SINGLE = [1, 1, 1, 1]


def _open_generation(rows: list[int], *, host: int = 0, size: int = 4) -> World:
    """Begin with a committed first progress and a reader and a publisher who agree on a generation."""
    world = World()
    world.start_reader(0, host=host, size=size)
    world.run_all(25)
    world.source.rows += rows
    return world


def the_stream_of_an_older_generation_comes_back() -> World:
    world = _open_generation([])
    world.start_reader(0)
    world.run(world.readers[0])
    world.run_until_opened(0)
    world.source.rows += _SINGLE
    world.run(world.readers[0], 4)
    world.copy_to_replica()  # from its first entry
    world.run_all(40)  # all of it is published
    world.start_reader(1)
    world.run(world.readers[1])  # ends the generation
    world.run_until_opened(0)
    world.fail_over_redis()
    world.run(world.publishers[0], 30)
    return world


def two_readers_claim_one_generation() -> World:
    world = _open_generation([])
    world.start_reader(0, host=0)
    world.start_reader(1, host=1)
    world.run(world.readers[0])
    world.run(world.readers[1])
    world.run_until_opened(0)
    world.source.rows += _SINGLE
    world.copy_to_replica()  # open, and not claimed
    world.run(world.readers[0], 3)  # claims, and appends its start and the first transaction of one host
    world.run(world.publishers[0], 8)
    world.fail_over_redis()
    world.run(world.readers[1], 5)  # claims too, and appends its start and two from the other, in its order
    world.run(world.publishers[0], 30)
    return world


def a_reader_writes_on_after_lost_writes() -> World:
    world = _open_generation([3, 1], size=1)
    world.run(world.readers[0], 3)
    world.copy_to_replica()
    world.run(world.publishers[0], 6)
    world.run(world.readers[0], 1)  # a row that is never published
    world.fail_over_redis()
    world.run(world.readers[0], 8)
    world.run(world.publishers[0], 30)
    return world


def a_publisher_crashes_behind_the_first_row() -> World:
    world = AtLeastOnceWorld()
    world.start_publisher(0)
    world.start_reader(0)
    world.run(world.readers[0], 3)  # retires, having loaded the functions
    world.run(world.publishers[0], 3)
    world.run(world.readers[0], 2)  # claims, and appends its start
    world.source.rows += _SINGLE
    world.run(world.readers[0], 3)
    world.run(world.publishers[0], 3)
    world.start_publisher(0)
    world.start_reader(0)
    world.run_all(60)
    return world


def a_publisher_wakes_up_late() -> World:
    world = AtLeastOnceWorld()
    world.start_publisher(1)
    world.run(world.publishers[1], 2)  # has seen that there is no progress
    world.start_publisher(0)
    world.start_reader(0)
    for turn in range(50):
        world.run(world.publishers[0])
        world.run(world.readers[0])
        if turn == 20:
            world.source.rows += _SINGLE
    world.run(world.publishers[1], 2)
    return world


#: the rules that would have to be missing, all of them
STORIES: list[tuple[Callable[[], World], tuple[str, ...]]] = [
    (the_stream_of_an_older_generation_comes_back, ("token", "ordinal")),
    (two_readers_claim_one_generation, ("claim",)),
    (a_publisher_crashes_behind_the_first_row, ("first start",)),
    (a_publisher_wakes_up_late, ("silent open",)),
    (a_reader_writes_on_after_lost_writes, ("number", "refusal of a number")),
]
