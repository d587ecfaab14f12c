"""T28: a connection that is silently dead is noticed; one that is slow on purpose is not treated as dead."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from common.connections import Execute, session_on
from common.pipelines import Consume, MakePipeline
from common.waiting import eventually, throughout
from databus_binlog.errors import ServerUnavailable
from devstack import Server
from devstack.pipeline import Pipeline
from devstack.replication import run
from faults.proxy import Proxy

pytestmark = pytest.mark.mysql_in_slow

_BACKLOG = 64 * 2**10


@pytest.fixture
async def proxy(source: Server) -> AsyncIterator[Proxy]:
    proxy = Proxy(source.port)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, source: Server, proxy: Proxy, schema: str) -> Pipeline:
    return make_pipeline(replace(source, port=proxy.port), schema, reader={"backlog_limit": _BACKLOG})


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_t28_a_half_open_connection_is_noticed_and_reading_continues(
    pipeline: Pipeline, proxy: Proxy, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    await execute("INSERT INTO t VALUES (1)")
    assert (await consumer.until(1))[0]["Rows"] == [[b"1"]]
    proxy.half_open()
    await execute("INSERT INTO t VALUES (2)")
    proxy.heal()  # for new connections
    assert (await consumer.until(1))[0]["Rows"] == [[b"2"]]
    assert "not even a heartbeat" in pipeline.log("reader").read_text()


@pytest.mark.parametrize("answers", range(6))
async def test_t28_an_answer_that_never_comes_is_noticed(proxy: Proxy, source: Server, answers: int) -> None:
    """Before it reads the binlog, the reader logs in and runs queries; any answer of the server may fail to arrive."""
    proxy.cut_after = answers
    with pytest.raises(ServerUnavailable, match="no answer from"):
        async with session_on(source, port=proxy.port, connect_timeout=0.5, query_timeout=0.5) as session:
            while True:
                await session.current_position()
    assert proxy.was_cut.is_set()


async def is_held_back(pipeline: Pipeline) -> bool:
    """Say whether the reader waits for the publisher."""
    metrics = (await asyncio.to_thread(pipeline.get, "reader", "/metrics")).text.splitlines()
    (backlog,) = (float(line.split()[1]) for line in metrics if line.startswith("databus_reader_backlog_bytes"))
    return backlog > _BACKLOG


@pytest.fixture
async def impatient(source: Server) -> AsyncIterator[None]:
    """Let the server disconnect clients that read nothing for a second, unless they asked for a longer timeout."""
    ((usual,),) = await run(source, "SELECT @@GLOBAL.net_write_timeout")
    await run(source, "SET GLOBAL net_write_timeout = 1")
    yield
    await run(source, f"SET GLOBAL net_write_timeout = {usual}")


@pytest.mark.usefixtures("impatient")
async def test_t28_the_server_waits_for_a_reader_that_is_held_back(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, text LONGTEXT)")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    await execute("INSERT INTO t VALUES (0, '')")
    await consumer.until(1)
    publisher = pipeline.pid("publisher") or 0
    os.kill(publisher, signal.SIGSTOP)
    try:
        for number in range(1, 121):  # more than all buffers on the way can hold
            await execute("INSERT INTO t VALUES (%s, REPEAT('x', 400000))", number)
        await eventually(lambda: is_held_back(pipeline), seconds=30)
        await throughout(4, lambda: is_held_back(pipeline))  # the server would have disconnected long before
    finally:
        os.kill(publisher, signal.SIGCONT)
    found = await consumer.until(120)
    assert [int(message["Rows"][0][0]) for message in found] == list(range(1, 121))
    assert "connection" not in pipeline.log("reader").read_text()
