"""GTID sets are subtracted and compared as MySQL does it."""

import random

from common.connections import session_on
from databus_binlog import GtidSet
from devstack import Server

SOURCES = ("896e7882-18fe-11ef-ab88-22222d34d411", "00112233-4455-6677-8899-aabbccddeeff")


def random_set(rng: random.Random) -> GtidSet:
    executed = GtidSet.parse("mysql", "")
    for _ in range(rng.randrange(12)):
        source = rng.choice(SOURCES) + rng.choice(("", ":blue", ":green"))
        first = rng.randrange(1, 40)
        executed.merge(f"{source}:{first}-{first + rng.randrange(9)}")
    return executed


async def test_differences_and_inclusion_are_those_of_mysql(mysql: Server) -> None:
    rng = random.Random(18)
    async with session_on(mysql) as session:
        for a, b in ((random_set(rng), random_set(rng)) for _ in range(200)):
            [(rest, subset)] = await session.query(
                "SELECT GTID_SUBTRACT(%s, %s), GTID_SUBSET(%s, %s)", (str(a), str(b), str(b), str(a))
            )
            assert str(a.minus(b)) == rest.replace("\n", "")
            assert a.covers(b) == bool(subset)
