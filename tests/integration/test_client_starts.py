"""Where a program begins, also after the pipeline has failed over to another server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from common.pipelines import MakePipeline
from common.waiting import eventually
from databus import ChangesLost, Databus
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress
from databus_core.settings import load
from devstack import Server
from devstack.replication import Pair, run
from integration.host_account import ACCOUNT, address

EXECUTED = {"mariadb": "SELECT @@GLOBAL.gtid_binlog_pos", "mysql": "SELECT @@GLOBAL.gtid_executed"}


async def numbers_from(config: Path, start: Any, count: int) -> list[int]:
    async with asyncio.timeout(60), Databus(config) as databus:
        found: list[int] = []
        async for change in databus.changes("shop.*", start=start):
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
