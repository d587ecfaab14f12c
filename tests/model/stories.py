"""Short stories that need one rule or another: what a search would take long to find."""

from collections.abc import Callable

from model.world import World

#: one row each, so that an entry of five events starts a generation and holds its first transaction
_SINGLE = [1, 1, 1, 1]


def _open_generation(rows: list[int], *, host: int = 0, size: int = 5) -> World:
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
    world.run(world.readers[0], 3)
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
    world.copy_to_replica()  # open, and nobody's
    world.run(world.readers[0], 2)  # claims, and appends the first transaction of one host
    world.run(world.publishers[0], 6)
    world.fail_over_redis()
    world.run(world.readers[1], 4)  # claims too, and appends both from the other, in its order
    world.run(world.publishers[0], 30)
    return world


def a_reader_writes_on_after_lost_writes() -> World:
    world = _open_generation([3, 1], size=1)
    world.run(world.readers[0], 3)
    world.copy_to_replica()
    world.run(world.publishers[0], 6)
    world.run(world.readers[0], 1)  # a row that nobody ever sees
    world.fail_over_redis()
    world.run(world.readers[0], 8)
    world.run(world.publishers[0], 30)
    return world


#: the rules that would have to be missing, all of them
STORIES: list[tuple[Callable[[], World], tuple[str, ...]]] = [
    (the_stream_of_an_older_generation_comes_back, ("token", "ordinal")),
    (two_readers_claim_one_generation, ("claim",)),
    (a_reader_writes_on_after_lost_writes, ("number", "refusal of a number")),
]
