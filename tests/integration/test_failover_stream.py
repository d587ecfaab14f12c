"""Changes continue after a failover, automatic or requested: a pair of databases, and the services as processes."""

import asyncio

import pytest

from common.pipelines import Changes, Consume, MakePipeline
from databus_cli import source as cli
from databus_cli.__main__ import main
from databus_core.errors import DatabusError
from databus_core.settings import load
from devstack import Server
from devstack.pipeline import Pipeline
from devstack.replication import Pair, run
from integration.host_account import ACCOUNT, address


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, pair: Pair) -> Pipeline:
    hosts = [address(server) for server in pair.servers]
    return make_pipeline(
        pair.primary, "shop", source={"hosts": hosts, "password_file": None} | ACCOUNT, reader={"start": "earliest"}
    )


@pytest.fixture
async def consumer(pipeline: Pipeline, changes: Consume) -> Changes:
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    return await changes(f"{pipeline.name}.shop.t")


async def insert(server: Server, *ids: int) -> None:
    await run(server, *(f"INSERT INTO shop.t VALUES ({number})" for number in ids))


async def next_ids(consumer: Changes, count: int) -> list[int]:
    return [int(row[0]) for message in await consumer.until(count) for row in message["Rows"]]


async def created_and_first(consumer: Changes) -> None:
    created, first = await consumer.until(2)
    assert (created["Action"], first["Rows"]) == ("create", [[b"1"]])


async def test_t18_a_failover_resumes_by_gtid_with_other_file_names(
    pair: Pair, pipeline: Pipeline, consumer: Changes
) -> None:
    first, second = pair.servers
    await created_and_first(consumer)
    await insert(first, 2, 3)
    assert await next_ids(consumer, 2) == [2, 3]
    await pair.caught_up()
    await pair.kill(first)
    await pair.promote()
    await insert(second, 4, 5)
    assert await next_ids(consumer, 2) == [4, 5]
    # Fail over back to the first server once it replicates the second.
    await pair.restart(first)
    await pair.follow()
    await pair.caught_up()
    await pair.kill(second)
    await pair.promote()
    await insert(first, 6)
    assert await next_ids(consumer, 1) == [6]
    log = pipeline.log("reader").read_text()
    assert log.count(" dependency_lost: ") == 2


@pytest.mark.mysql_in_slow
async def test_a_host_that_does_not_send_its_binlog_to_the_account_is_left(
    pair: Pair, pipeline: Pipeline, consumer: Changes
) -> None:
    """The login works and all settings are right; only the right to read the binlog is missing."""
    first, _ = pair.servers
    await created_and_first(consumer)
    await asyncio.to_thread(pipeline.stop, "reader")
    await run(first, "SET SESSION sql_log_bin = 0", "REVOKE REPLICATION SLAVE ON *.* FROM reader@'%'")
    try:
        pipeline.spawn("reader")
        await insert(first, 2)
        assert await next_ids(consumer, 1) == [2]
    finally:
        await run(first, "SET SESSION sql_log_bin = 0", "GRANT REPLICATION SLAVE ON *.* TO reader@'%'")
    metrics = (await asyncio.to_thread(pipeline.get, "reader", "/metrics")).text
    labels = f'host="{address(first)}",pipeline="{pipeline.name}",reason="not_ready"'
    assert f"databus_reader_source_refusals_total{{{labels}}} 1.0" in metrics
    log = pipeline.log("reader").read_text()
    assert f"host_refused: database {address(first)}: the user lacks a privilege; GRANT REPLICATION SLAVE" in log


@pytest.mark.mysql_in_slow
async def test_the_reader_switches_to_the_requested_host(pair: Pair, pipeline: Pipeline, consumer: Changes) -> None:
    first, second = pair.servers
    settings = load(pipeline.config)
    with pytest.raises(DatabusError, match="has answered within 1 s: check that a reader is running"):
        await cli.ask(settings.model_copy(update={"name": "nobody"}), address(first), polls=1, seconds=1)
    await created_and_first(consumer)
    went = await cli.ask(settings, address(second))
    assert (went.done, went.text) == (True, f"the reader is at {address(second)}")
    await insert(first, 2)
    assert await next_ids(consumer, 1) == [2]

    # The reader's successor starts at that host.
    await asyncio.to_thread(pipeline.stop, "reader")
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait, "reader")
    assert (await cli.ask(settings, address(second))).text == f"the reader is at {address(second)}"

    # The first host lacks changes that were read from the second, which it does not replicate: the reader stays.
    await insert(second, 3)
    assert await next_ids(consumer, 1) == [3]
    stayed = await cli.ask(settings, address(first))
    assert not stayed.done
    assert stayed.text.startswith(f"the reader stays at {address(second)}: database {address(first)}: ")
    assert "which was published" in stayed.text
    await pair.kill(first)
    stayed = await cli.ask(settings, address(first))
    assert "server unavailable" in stayed.text
    await insert(second, 4)
    assert await next_ids(consumer, 1) == [4]


def test_a_switch_to_an_unknown_host_is_refused(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", "switch", "elsewhere:3306", "--config", str(pipeline.config)]) == 1
    assert "elsewhere:3306 is not one of source.hosts" in capsys.readouterr().err
