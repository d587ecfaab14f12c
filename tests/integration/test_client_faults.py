"""The client, when something is missing or away: it says what to do, or continues where it was."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from common.connections import Execute
from common.pipelines import Consume, MakePipeline
from common.waiting import eventually
from databus import ChangeMissing, Changes, ChangesLost, Databus
from databus_cli.__main__ import main
from devstack import Server
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)

TEXTS = "CREATE TABLE texts (id INT PRIMARY KEY, t LONGTEXT)"


async def read_until(changes: Changes, number: int) -> list[int]:
    """Read and acknowledge until the row with this number; return the numbers that were read."""
    found: list[int] = []
    async with asyncio.timeout(60):
        async for change in changes:
            if change.after:
                found.append(change.after["id"])
                await change.ack()
            if found[-1:] == [number]:
                break
    return found


def remove_two(folder: Path) -> bool:
    """Remove the claim checks if there are two, and not one that is being written. Return whether there were."""
    claims = list(folder.glob("claims/*/[!.]*"))
    for claim in claims if len(claims) == 2 else ():
        claim.unlink()
    return len(claims) == 2


async def start(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume, oversize: str, tmp_path: Path
) -> Pipeline:
    """Start a pipeline whose topic takes only small records."""
    publisher = {"oversize": oversize, "claim_checks": f"{tmp_path.as_uri()}/claims"}
    pipeline = make_pipeline(source, schema, publisher=publisher)
    await changes(f"{pipeline.name}.{schema}.texts", **{"max.message.bytes": "2000"})
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    return pipeline


async def test_a_dead_letter_stops_the_program_until_it_is_decided_about(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume, execute: Execute, tmp_path: Path
) -> None:
    await execute(TEXTS)
    pipeline = await start(make_pipeline, source, schema, changes, "deadletter", tmp_path)
    store = tmp_path / "place"
    await execute("INSERT INTO texts VALUES (1, 'small')")
    async with Databus(pipeline.config) as databus:
        assert await read_until(databus.changes(f"{schema}.*", store=store), 1) == [1]
        await execute("INSERT INTO texts VALUES (2, REPEAT('large ', 1000))")
        await execute("INSERT INTO texts VALUES (3, 'small')")
        with pytest.raises(ChangeMissing, match=rf"a change of {schema}\.texts was not published: .*deadletter list"):
            await read_until(databus.changes(f"{schema}.*", store=store), 3)
        discard = ["deadletter", "discard", "--yes", "--config", str(pipeline.config)]
        assert await asyncio.to_thread(main, discard) == 0
        assert await read_until(databus.changes(f"{schema}.*", store=store), 3) == [3]


async def test_a_value_that_is_stored_outside_of_kafka_is_read_from_there(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume, execute: Execute, tmp_path: Path
) -> None:
    await execute(TEXTS)
    pipeline = await start(make_pipeline, source, schema, changes, "claim_check", tmp_path)
    async with Databus(pipeline.config) as databus, asyncio.timeout(60):
        iteration = aiter(databus.changes(f"{schema}.*", start="earliest"))
        await execute("INSERT INTO texts VALUES (2, REPEAT('large ', 1000))")
        assert (await anext(iteration)).after == {"id": 2, "t": "large " * 1000}
        await execute("INSERT INTO texts VALUES (3, REPEAT('large ', 1000))")
        await eventually(lambda: asyncio.to_thread(remove_two, tmp_path))
        with pytest.raises(ChangesLost, match=r"is not there: mount publisher\.claim_checks"):
            await anext(iteration)


async def test_records_that_kafka_has_deleted_are_an_error(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, kafka: Server, tmp_path: Path
) -> None:
    await execute(TEXTS)
    pipeline = make_pipeline(source, schema)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    store = tmp_path / "place"
    async with Databus(pipeline.config) as databus:
        await execute("INSERT INTO texts VALUES (1, 'x')")
        assert await read_until(databus.changes(f"{schema}.*", start="earliest", store=store), 1) == [1]
        for number in (2, 3, 4):
            await execute("INSERT INTO texts VALUES (%s, 'x')", number)
        await read_until(databus.changes(f"{schema}.*", start="earliest"), 4)
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
        await admin.start()
        partition = TopicPartition(f"{pipeline.name}.{schema}.texts", 0)
        await admin.delete_records({partition: RecordsToDelete(before_offset=4)})
        await admin.close()
        with pytest.raises(ChangesLost, match=r"its records were deleted, or .*; begin again with a snapshot"):
            await read_until(databus.changes(f"{schema}.*", store=store), 4)
        store.unlink()
        assert await read_until(databus.changes(f"{schema}.*", store=store), 4) == [1, 2, 3, 4]
