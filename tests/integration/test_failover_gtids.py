"""T17: GTID sets with several sources, tags and gaps, and transactions without a GTID, on MySQL."""

import asyncio

import pytest

from common.binlog_rows import read_rows
from common.pipelines import Changes, Consume, MakePipeline
from common.waiting import eventually
from databus_binlog import GtidSet, Position
from databus_cli import source as cli
from databus_core.errors import Refusal, SourceRefused
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress
from databus_core.runtime import Health
from databus_core.settings import Settings, load
from databus_core.source_connection import connect_source
from databus_reader.source.hosts import Hosts, SourceConnection
from devstack import Server
from devstack.pipeline import Pipeline
from devstack.replication import Pair, run
from integration.host_account import ACCOUNT, address

pytestmark = pytest.mark.parametrize("pair", ["mysql"], indirect=True)

OTHER = "00112233-4455-6677-8899-aabbccddeeff"


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, pair: Pair) -> Pipeline:
    hosts = [address(server) for server in pair.servers]
    return make_pipeline(pair.primary, "shop", source={"hosts": hosts, "password_file": None} | ACCOUNT)


async def running(pipeline: Pipeline, changes: Consume) -> Changes:
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    await asyncio.to_thread(pipeline.wait, "reader")
    return await changes(f"{pipeline.name}.shop.t")


async def insert_as(server: Server, gtid: str, number: int) -> None:
    await run(server, f"SET SESSION gtid_next = '{gtid}'", f"INSERT INTO shop.t VALUES ({number})")


async def next_ids(consumer: Changes, count: int) -> set[int]:
    return {int(row[0]) for message in await consumer.until(count) for row in message["Rows"]}


async def test_t17_sources_tags_and_gaps_survive_a_failover(pair: Pair, pipeline: Pipeline, changes: Consume) -> None:
    first, second = pair.servers
    consumer = await running(pipeline, changes)
    names = ("AUTOMATIC", f"{OTHER}:1", f"{OTHER}:5", "AUTOMATIC:blue", f"{OTHER}:green:7", f"{OTHER}:3", "AUTOMATIC")
    for number, gtid in enumerate(names, start=10):
        await insert_as(first, gtid, number)
    assert await next_ids(consumer, 7) == set(range(10, 17))
    settings = load(pipeline.config)
    ((executed,),) = await run(first, "SELECT @@GLOBAL.gtid_executed")

    async def committed() -> Progress | None:
        progress = await read_progress(settings)
        return progress if progress and progress.transaction >= 7 else None

    progress = await eventually(committed, seconds=20)
    assert progress
    assert progress.position
    assert GtidSet.parse("mysql", progress.position.gtid_set) == GtidSet.parse("mysql", executed)
    assert f"{OTHER}:1:3:5:green:7" in progress.position.gtid_set
    await pair.caught_up()
    await pair.kill(first)
    await pair.promote()
    for number, gtid in enumerate((f"{OTHER}:2", "AUTOMATIC", f"{OTHER}:4", f"{OTHER}:green:6"), start=20):
        await insert_as(second, gtid, number)
    assert await next_ids(consumer, 4) == {20, 21, 22, 23}, "transactions in gaps are published, and none twice"


async def test_t17_a_gap_of_a_replica_with_several_workers_is_not_a_different_history(pair: Pair) -> None:
    first, second = pair.servers
    for number in (1, 2, 4):
        await insert_as(first, f"{OTHER}:{number}", 10 + number)
    await pair.caught_up()
    await run(second, "STOP REPLICA")
    await insert_as(first, f"{OTHER}:3", 13)
    await insert_as(second, f"{OTHER}:5", 15)
    with pytest.raises(SourceRefused) as caught:
        await go_on(await read_to_the_end(first), pair, second)
    assert caught.value.reason is Refusal.BEHIND
    assert f"it lacks {OTHER}:3, which" in str(caught.value)


async def test_t17_a_server_that_would_skip_a_transaction_without_gtid_is_refused(pair: Pair) -> None:
    """MySQL skips row 2, which has no GTID, if the log is requested by GTIDs.

    It then begins with the newest file whose predecessors contain no GTID that the reader lacks. Row 2 is in one of
    these predecessors.
    """
    first, _ = pair.servers
    await run(pair.replica, "STOP REPLICA")
    progress = await read_to_the_end(first)
    await set_mode(first, "ON_PERMISSIVE", "OFF_PERMISSIVE")
    await run(first, "INSERT INTO shop.t VALUES (2)")
    passing = await go_on(progress, pair, first)
    assert (passing.position.gtid_set, passing.gtids) == ("", False), "read by file and offset, without a GTID set"
    behind = await read_to_the_end(first)
    await set_mode(first, "ON_PERMISSIVE", "ON")
    with pytest.raises(SourceRefused) as caught:
        await go_on(progress, pair, first)
    assert caught.value.reason is Refusal.NO_GTIDS
    assert "set gtid_mode=ON_PERMISSIVE until it is read" in str(caught.value)
    sent = await read_rows(first, Position(progress.position.gtid_set), "shop")
    assert sent == [], "row 2 would be lost"
    # A position after row 2 in the same file has no GTIDs, because row 2 has none; a position in a later file has them.
    place = Progress(Position("", behind.position.file, behind.position.offset), 1, 1, behind.server)
    assert not (await go_on(place, pair, first)).gtids
    await run(first, "INSERT INTO shop.t VALUES (3)")
    end = await read_to_the_end(first)
    place = Progress(Position("", end.position.file, end.position.offset), 1, 1, end.server)
    resumed = await go_on(place, pair, first)
    assert resumed.gtids
    assert GtidSet.parse("mysql", resumed.position.gtid_set) == GtidSet.parse("mysql", end.position.gtid_set)


async def test_t17_while_transactions_have_no_gtid_no_other_host_takes_over(
    pair: Pair, pipeline: Pipeline, changes: Consume
) -> None:
    first, second = pair.servers
    await run(second, "STOP REPLICA")
    await set_mode(first, "ON_PERMISSIVE", "OFF_PERMISSIVE")
    consumer = await running(pipeline, changes)
    await run(first, "INSERT INTO shop.t VALUES (2)")
    await set_mode(first, "ON_PERMISSIVE")
    await run(first, "INSERT INTO shop.t VALUES (3)")
    assert await next_ids(consumer, 2) == {2, 3}
    settings = load(pipeline.config)
    stayed = await cli.ask(settings, address(second))
    assert f"the reader stays at {address(first)}" in stayed.text
    assert "no_gtids" in stayed.text
    progress = await read_progress(settings)
    assert progress and progress.position and progress.position.gtid_set == ""
    await run(first, "INSERT INTO shop.t VALUES (4)")
    assert await next_ids(consumer, 1) == {4}


async def set_mode(server: Server, *modes: str) -> None:
    await run(server, *(f"SET GLOBAL gtid_mode = {mode}" for mode in modes))


async def read_to_the_end(server: Server) -> Progress:
    settings = Settings(name="shop", source={"hosts": [address(server)]} | ACCOUNT)
    async with connect_source(settings.source) as session:
        return Progress(await session.current_position(), 1, 1, session.server.identity)


async def go_on(progress: Progress, pair: Pair, server: Server) -> SourceConnection:
    settings = Settings(name="shop", source={"hosts": [address(server)]} | ACCOUNT)
    async with Hosts(settings, 0.0).connect(progress, Health()) as connection:
        return connection
