"""Short stories that go wrong without certain rules of the protocol. A search would take long to find them."""

from collections.abc import Callable

from model.at_least_once import AtLeastOnceWorld
from model.world import World

#: Four transactions with one row each. With four events in an entry, the first entry after the Start contains the
#: table's definition and one complete transaction.
_SINGLE = [1, 1, 1, 1]


def _open_generation(rows: list[int], *, host: int = 0, size: int = 4) -> World:
    """Make a world with a committed first progress and a generation (`databus_core.pipe`) that a reader has claimed.

    Then the source commits transactions with these numbers of rows.
    """
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
    world.copy_to_replica()  # before any entry of the generation is trimmed
    world.run_all(40)  # publishes all transactions
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
    world.copy_to_replica()  # while the generation is open and not claimed
    world.run(world.readers[0], 3)  # claims, and appends its Start and the first transaction of host 0
    world.run(world.publishers[0], 8)
    world.fail_over_redis()
    world.run(world.readers[1], 5)  # claims as well, and appends its Start and transactions in the order of host 1
    world.run(world.publishers[0], 30)
    return world


def a_reader_continues_after_redis_lost_writes() -> World:
    world = _open_generation([3, 1], size=1)
    world.run(world.readers[0], 3)
    world.copy_to_replica()
    world.run(world.publishers[0], 6)
    world.run(world.readers[0], 1)  # appends a row, which the failover loses
    world.fail_over_redis()
    world.run(world.readers[0], 8)
    world.run(world.publishers[0], 30)
    return world


def a_publisher_crashes_after_the_first_row() -> World:
    world = AtLeastOnceWorld()
    world.start_publisher(0)
    world.start_reader(0)
    world.run(world.readers[0], 3)  # loads the functions and retires
    world.run(world.publishers[0], 3)
    world.run(world.readers[0], 2)  # claims, and appends its Start
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
    world.run(world.publishers[1], 2)  # reads that there is no progress
    world.start_publisher(0)
    world.start_reader(0)
    for turn in range(50):
        world.run(world.publishers[0])
        world.run(world.readers[0])
        if turn == 20:
            world.source.rows += _SINGLE
    world.run(world.publishers[1], 2)
    return world


#: Stories, each with the rules that keep it from going wrong. Any one of a story's rules is enough.
STORIES: list[tuple[Callable[[], World], tuple[str, ...]]] = [
    (the_stream_of_an_older_generation_comes_back, ("token", "ordinal")),
    (two_readers_claim_one_generation, ("claim",)),
    (a_publisher_crashes_after_the_first_row, ("first start",)),
    (a_publisher_wakes_up_late, ("silent open",)),
    (a_reader_continues_after_redis_lost_writes, ("number", "refusal of a number")),
]
