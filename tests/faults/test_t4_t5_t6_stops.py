"""Events that a pipeline must not skip: it stops, names the position, and after a restart stops there again."""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Iterator

import pytest

from common.connections import connected
from common.pipelines import Consume, MakePipeline
from devstack import Kind, Server, Stack
from devstack.pipeline import Pipeline

_INCIDENT, _UNKNOWN = 26, 126
_IGNORABLE = 0x80
_LOST_EVENTS = struct.pack("<HB", 1, 4) + b"lost"


@pytest.fixture(params=["mariadb", "mysql"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of this module's own: its tests write into the binlogs of its databases."""
    stack = Stack(tmp_path_factory.mktemp("own"), own=True)
    yield stack
    stack.discard()


@pytest.fixture
def source(stack: Stack, kind: Kind) -> Server:
    return stack.start(kind)


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, source: Server) -> AsyncIterator[Pipeline]:
    """A pipeline that publishes row 1 first. The next test's pipeline starts after what this test has written."""
    async with connected(source) as execute:
        await execute("CREATE DATABASE shop")
        await execute("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        pipeline = make_pipeline(source, "shop", doubt={"on_doubt": "stop"})
        pipeline.start_all("publisher", "reader")
        await execute("INSERT INTO shop.t VALUES (1)")
    yield pipeline
    async with connected(source) as execute:
        await execute("DROP DATABASE shop")
        await execute("FLUSH BINARY LOGS")


async def write_event(stack: Stack, pipeline: Pipeline, event_type: int, body: bytes, flags: int = 0) -> str:
    """Append an event to the binlog while server and reader do not run, and start both; return the event's position."""
    kind = pipeline.source.kind
    await asyncio.to_thread(pipeline.stop, "reader")  # MySQL waits 10 s for a connected reader before it stops
    await asyncio.to_thread(stack.stop, kind)
    data = stack.home / kind / "data"
    log = data / (data / "binlog.index").read_text().split()[-1]
    start, size = log.stat().st_size, 19 + len(body) + 4
    event = struct.pack("<IBIIIH", 1_700_000_000, event_type, 1, size, start + size, flags) + body
    with log.open("ab") as file:
        file.write(event + struct.pack("<I", zlib.crc32(event)))
    await asyncio.to_thread(stack.start, kind)
    pipeline.spawn("reader")
    return f"{log.name}:{start}"


async def stops(pipeline: Pipeline) -> str:
    """Wait until the reader has stopped, start it again, wait until it has stopped again, and return its log."""
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    return pipeline.log("reader").read_text()


async def test_t4_an_event_of_an_unknown_type_stops_the_reader(
    pipeline: Pipeline, stack: Stack, changes: Consume
) -> None:
    consumer = await changes(f"{pipeline.name}.shop.t")
    await consumer.until(1)
    place = await write_event(stack, pipeline, _UNKNOWN, b"?")
    said = await stops(pipeline)
    assert said.count(f"{_UNKNOWN} (unknown) at {place}") >= 2


async def test_t4_an_unknown_event_marked_as_ignorable_does_not_stop_the_reader(
    pipeline: Pipeline, stack: Stack, source: Server, changes: Consume
) -> None:
    consumer = await changes(f"{pipeline.name}.shop.t")
    await consumer.until(1)
    await write_event(stack, pipeline, _UNKNOWN, b"?", _IGNORABLE)
    async with connected(source) as execute:
        await execute("INSERT INTO shop.t VALUES (2)")
    assert (await consumer.until(1))[0]["Rows"] == [[b"2"]]


async def test_t5_a_change_that_is_logged_as_a_statement_stops_the_reader(
    pipeline: Pipeline, source: Server, changes: Consume
) -> None:
    await (await changes(f"{pipeline.name}.shop.t")).until(1)
    async with connected(source) as execute:
        await execute("SET SESSION binlog_format = 'STATEMENT'")
        await execute("INSERT INTO shop.t VALUES (2)")
    said = await stops(pipeline)
    assert said.count("may have changed tables of shop") >= 2
    assert "binlog_format=ROW" in said


async def test_t6_an_incident_stops_the_reader(pipeline: Pipeline, stack: Stack, changes: Consume) -> None:
    await (await changes(f"{pipeline.name}.shop.t")).until(1)
    place = await write_event(stack, pipeline, _INCIDENT, _LOST_EVENTS)
    said = await stops(pipeline)
    assert said.count(place) >= 2
    assert "the server lost events" in said
