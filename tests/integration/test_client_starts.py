"""Where a program begins, also after the pipeline has failed over to another server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute
from common.pipelines import MakePipeline
from common.waiting import eventually
from databus import ChangesLost, Databus, InvalidSettings, Position
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress
from databus_core.settings import load
from devstack import Server
from devstack.replication import Pair, run
from integration.host_account import ACCOUNT, address

pytestmark = pytest.mark.mysql_in_slow

EXECUTED = {"mariadb": "SELECT @@GLOBAL.gtid_binlog_pos", "mysql": "SELECT @@GLOBAL.gtid_executed"}


async def numbers_from(config: Path, start: Any, count: int, tables: str = "shop.*") -> list[int]:
    async with asyncio.timeout(60), Databus(config) as databus:
        found: list[int] = []
        async for change in databus.changes(tables, start=start):
            if change.after:
                found.append(change.after["id"])
            if len(found) == count:
                return found
    raise AssertionError(found)


async def test_gtids_are_the_same_place_on_each_server(make_pipeline: MakePipeline, pair: Pair) -> None:
    first, second = pair.servers
    source = {"hosts": [address(each) for each in pair.servers], "password_file": None} | ACCOUNT
    pipeline = make_pipeline(pair.primary, "shop", source=source)
    settings = load(pipeline.config)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher")

    async def insert(server: Server, number: int) -> str:
        """Insert a row, wait until it is published, and return the GTIDs that the server has executed then."""
        before = (await read_progress(settings) or Progress()).transaction
        await run(server, f"INSERT INTO shop.t VALUES ({number})")

        async def published() -> bool:
            return (await read_progress(settings) or Progress()).transaction > before

        await eventually(published)
        ((executed,),) = await run(server, EXECUTED[pair.kind])
        return executed.replace("\n", "")

    sets = {number: await insert(first, number) for number in (2, 3)}
    await pair.caught_up()
    await pair.kill(first)
    await pair.promote()
    sets |= {number: await insert(second, number) for number in (4, 5)}
    for number in (2, 3, 4):
        following = [each for each in (3, 4, 5) if each > number]
        assert await numbers_from(pipeline.config, f"gtid:{sets[number]}", len(following)) == following
    with pytest.raises(ChangesLost, match="the GTID set lacks transactions that were published before the oldest"):
        await numbers_from(pipeline.config, f"gtid:{sets[2].rpartition('-')[0]}-1", 1)
    with pytest.raises(InvalidSettings, match=r"up to transaction 2 the pipeline has read another log .*gtid:…"):
        await numbers_from(pipeline.config, Position("", "first.000001", 400), 1)


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_position_that_the_pipeline_has_not_reached_is_waited_for(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    """Otherwise changes before it would come, because they are published later than the program starts."""
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher")
    await execute("INSERT INTO t VALUES (1)")
    assert await numbers_from(pipeline.config, "earliest", 1, f"{schema}.*") == [1]
    await asyncio.to_thread(pipeline.stop, "publisher")
    await execute("INSERT INTO t VALUES (2)")
    ((file, offset, *_),) = await run(source, "SHOW MASTER STATUS")
    reading = asyncio.create_task(numbers_from(pipeline.config, Position("", file, offset), 1, f"{schema}.*"))
    await execute("INSERT INTO t VALUES (3)")
    await asyncio.wait({reading}, timeout=1)
    pipeline.spawn("publisher")
    assert await reading == [3]
    with pytest.raises(InvalidSettings, match=r"other-bin\.000001 is no file of the log that the pipeline reads"):
        await numbers_from(pipeline.config, Position("", "other-bin.000001", 400), 1, f"{schema}.*")
