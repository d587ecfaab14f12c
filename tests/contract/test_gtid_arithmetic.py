"""Our arithmetic of GTID sets is MySQL's own."""

import random

from common.connections import session_on
from databus_binlog import GtidSet
from devstack import Server

SOURCES = ("896e7882-18fe-11ef-ab88-22222d34d411", "00112233-4455-6677-8899-aabbccddeeff")


def drawn(chance: random.Random) -> GtidSet:
    executed = GtidSet.parse("mysql", "")
    for _ in range(chance.randrange(12)):
        source = chance.choice(SOURCES) + chance.choice(("", ":blue", ":green"))
        first = chance.randrange(1, 40)
        executed.merge(f"{source}:{first}-{first + chance.randrange(9)}")
    return executed


async def test_mysql_subtracts_and_compares_as_we_do(mysql: Server) -> None:
    chance = random.Random(18)
    async with session_on(mysql) as session:
        for a, b in ((drawn(chance), drawn(chance)) for _ in range(200)):
            [(rest, subset)] = await session.query(
                "SELECT GTID_SUBTRACT(%s, %s), GTID_SUBSET(%s, %s)", (str(a), str(b), str(b), str(a))
            )
            assert str(a.minus(b)) == rest.replace("\n", "")
            assert a.covers(b) == bool(subset)
