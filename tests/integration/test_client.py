"""The client on a complete pipeline: a dump and what follows, without gap and without duplicate."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute, connected
from common.pipelines import MakePipeline
from common.waiting import cancelled
from databus import Change, Changes, Databus, InvalidSettings
from devstack import Server
from devstack.pipeline import Pipeline

NUMBERS = "CREATE TABLE numbers (id INT PRIMARY KEY, balance DECIMAL(9,2))"


@asynccontextmanager
async def counting(source: Server, schema: str) -> AsyncIterator[None]:
    """Insert the numbers 1, 2, 3 …, each in a transaction, as fast as the server can."""

    async def count(execute: Execute) -> None:
        for number in itertools.count(1):
            await execute(f"INSERT INTO {schema}.numbers VALUES (%s, 1.5)", number)

    async with connected(source) as execute:
        task = asyncio.create_task(count(execute))
        yield
        await cancelled(task)


async def read_behind_the_dump(changes: Changes, count: int) -> list[Change]:
    """Read the rows of the dump and so many changes after it."""
    found: list[Change] = []
    async with asyncio.timeout(60):
        async for change in changes:
            found.append(change)
            count -= not change.is_snapshot
            if count == 0:
                break
    return found


def numbers_in(changes: list[Change]) -> list[int]:
    return [change.after["id"] for change in changes if change.after]


@pytest.fixture
def publisher() -> dict[str, Any]:
    """Settings of the publisher."""
    return {}


@pytest.fixture
async def pipeline(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, publisher: dict[str, Any]
) -> Pipeline:
    await execute(NUMBERS)
    pipeline = make_pipeline(source, schema, publisher=publisher)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    return pipeline


async def test_no_commit_is_lost_or_repeated_between_the_dump_and_kafka(
    pipeline: Pipeline, source: Server, schema: str
) -> None:
    async with counting(source, schema), Databus(pipeline.url("dump-api")) as databus:
        found = await read_behind_the_dump(databus.changes(f"{schema}.*"), 500)
    last = len(found)
    assert numbers_in(found) == list(range(1, last + 1))
    assert last > 500
    assert found[-1].key == {"id": last}
    assert found[-1].after == {"id": last, "balance": Decimal("1.50")}
    assert found[-1].after_text == {"id": str(last), "balance": "1.50"}


@pytest.mark.parametrize(
    "publisher",
    [
        {"format": "debezium-json"},
        {"format": "maxwell-json", "options": {"output_binlog_position": True}},
    ],
    ids=["debezium-json", "maxwell-json"],
)
async def test_other_formats_are_joined_too(pipeline: Pipeline, source: Server, schema: str) -> None:
    """Their positions are where events start, not where they end as in format databus."""
    async with counting(source, schema), Databus(pipeline.url("dump-api")) as databus:
        found = await read_behind_the_dump(databus.changes(f"{schema}.*"), 500)
    assert numbers_in(found) == list(range(1, len(found) + 1))
    assert found[-1].key == {"id": len(found)}
    assert found[-1].after == {"id": len(found), "balance": Decimal("1.50")}


@pytest.mark.parametrize("publisher", [{"format": "canal-json"}])
async def test_a_format_without_positions_is_not_joined(pipeline: Pipeline, schema: str, execute: Execute) -> None:
    async with Databus(pipeline.config) as databus:
        with pytest.raises(InvalidSettings, match="records of format canal-json have no positions"):
            await anext(aiter(databus.changes(f"{schema}.*")))
        await execute("INSERT INTO numbers VALUES (1, 1.5)")
        async with asyncio.timeout(60):
            change = await anext(aiter(databus.changes(f"{schema}.*", start="earliest")))
    assert change.after == {"id": 1, "balance": Decimal("1.50")}


async def test_a_program_continues_where_its_store_is(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, tmp_path: Path
) -> None:
    """Also in the middle of the dump, and in the middle of a transaction."""
    await execute("INSERT INTO numbers VALUES " + ", ".join(f"({number}, 0)" for number in range(1, 101)))
    place, found = tmp_path / "place.json", list[int]()

    async def read_some(count: int) -> None:
        async with asyncio.timeout(60), Databus(pipeline.config) as databus:
            async for change in databus.changes(f"{schema}.*", store=place):
                found.extend(numbers_in([change]))
                await change.ack()
                count -= 1
                if not count:
                    break

    await read_some(30)
    await execute("INSERT INTO numbers VALUES " + ", ".join(f"({number}, 0)" for number in range(101, 201)))
    for count in (70, 50, 40):
        await read_some(count)
    await execute("INSERT INTO numbers VALUES (201, 0)")
    await read_some(11)
    assert found == list(range(1, 202))
