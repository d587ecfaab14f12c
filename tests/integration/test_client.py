"""The client on a complete pipeline: a dump and what follows, without gap and without duplicate."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute, connected
from common.pipelines import MakePipeline
from common.waiting import cancelled, eventually
from databus import Change, Changes, Databus, InvalidSettings, SqliteStore
from databus.sync import Databus as SyncDatabus
from databus_core.change_topics import ChangeTopics
from databus_core.dump_client import DumpApi
from devstack import Server
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.mysql_in_slow

#: what does not depend on the database needs only one of them
one_server = pytest.mark.parametrize("source", ["mariadb"], indirect=True)
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


@pytest.mark.slow
async def test_fifty_dumps_while_every_millisecond_something_is_committed(
    pipeline: Pipeline, source: Server, schema: str
) -> None:
    async with counting(source, schema):
        for _ in range(50):
            async with DumpApi(pipeline.url("dump-api"), poll=0.05) as api:
                await api.take([f"{schema}.*"])
            async with Databus(pipeline.url("dump-api")) as databus:
                found = await read_behind_the_dump(databus.changes(f"{schema}.*"), 200)
            assert numbers_in(found) == list(range(1, len(found) + 1))


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


@pytest.mark.parametrize("kind", ["file", "sqlite", "kafka"])
@one_server
async def test_a_program_continues_where_its_store_is(
    pipeline: Pipeline, schema: str, execute: Execute, tmp_path: Path, kind: str
) -> None:
    """Also in the middle of the dump, and in the middle of a transaction."""
    await execute("INSERT INTO numbers VALUES " + ", ".join(f"({number}, 0)" for number in range(1, 101)))
    found: list[int] = []

    async def read_some(count: int) -> None:
        async with asyncio.timeout(60), Databus(pipeline.config) as databus:
            store = {
                "file": str(tmp_path / "place.json"),
                "sqlite": SqliteStore(tmp_path / "place.db"),
                "kafka": databus.kafka_store(schema),
            }[kind]
            async for change in databus.changes(f"{schema}.*", store=store):
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


async def test_transactions_of_several_partitions_and_topics_are_complete_and_in_order(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    """Money moves between two tables with four partitions each; after each transaction the sum is the same."""
    pipeline = make_pipeline(source, schema, publisher={"partitions": 4, "partition_by": "primary_key"})
    for table in ("left_side", "right_side"):
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
        await execute(f"INSERT INTO {table} VALUES " + ", ".join(f"({number}, 100)" for number in range(10)))
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    chosen = random.Random(3)
    kept: dict[str, dict[int, int]] = {"left_side": {}, "right_side": {}}
    statements: list[str] = []

    def keep(change: Change) -> None:
        rows = kept[change.definition.name]
        if change.query:
            statements.append(change.query)
        if change.before:
            del rows[change.before["id"]]
        if change.after:
            rows[change.after["id"]] = change.after["v"]

    async def move_money() -> None:
        for number in range(60):
            if number == 30:
                await execute("ALTER TABLE left_side ADD note INT")
            one, other = chosen.sample(range(10), 2)
            await execute("BEGIN")
            await execute("UPDATE left_side SET v = v - %s WHERE id IN (%s, %s)", number, one, other)
            await execute("UPDATE right_side SET v = v + %s WHERE id IN (%s, %s)", number, one, other)
            await execute("UPDATE right_side SET id = id + 100 WHERE id = %s", one)
            await execute("UPDATE right_side SET id = id - 100 WHERE id = %s", one + 100)
            await execute("COMMIT")
        await execute("INSERT INTO left_side VALUES (1000, 0, 0)")

    last, seen = "", 0
    async with asyncio.timeout(60), Databus(pipeline.config) as databus:
        async for transaction in databus.changes([f"{schema}.left_side", f"{schema}.right_*"]).transactions():
            for change in transaction.changes:
                keep(change)
                assert change.origin.sequence >= last
                last = change.origin.sequence
            if 1000 in kept["left_side"]:
                break
            if not transaction.is_snapshot:
                assert sum(kept["left_side"].values()) + sum(kept["right_side"].values()) == 2000
                seen += 1
            elif len(kept["left_side"]) + len(kept["right_side"]) == 20:
                moving = asyncio.create_task(move_money())
        await moving
    assert seen == 61
    assert len(statements) == 1


@one_server
async def test_closing_ends_the_loops_of_other_tasks(pipeline: Pipeline, schema: str, execute: Execute) -> None:
    await execute("INSERT INTO numbers VALUES (1, 1.5)")
    found: list[int] = []

    async def read() -> None:
        async for change in changes:
            found.extend(numbers_in([change]))

    async with asyncio.timeout(60), Databus(pipeline.config) as databus:
        async with databus.changes(f"{schema}.*") as changes:
            first, second = asyncio.create_task(read()), asyncio.create_task(read())
            await eventually(lambda: asyncio.sleep(0, found == [1, 1]))
        await asyncio.gather(first, second)
        third = asyncio.create_task(read())
        await eventually(lambda: asyncio.sleep(0, len(found) == 3))
        await databus.close()
        await third


@one_server
async def test_a_table_that_is_new_comes_in_order_although_topics_are_seldom_listed(
    pipeline: Pipeline, schema: str, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[float] = []
    original = ChangeTopics.partitions

    async def partitions(self: ChangeTopics) -> Any:
        listed.append(asyncio.get_running_loop().time())
        return await original(self)

    monkeypatch.setattr(ChangeTopics, "partitions", partitions)
    found: list[tuple[str, int]] = []
    async with asyncio.timeout(60), Databus(pipeline.config) as databus:
        iteration = aiter(databus.changes(f"{schema}.*", start="earliest"))
        for number in range(60):
            if number == 40:
                await execute("CREATE TABLE later (id INT PRIMARY KEY)")
            await execute(f"INSERT INTO {'later' if number >= 40 else 'numbers'} (id) VALUES ({number})")
            if number < 40:  # each is a round of its own
                change = await anext(iteration)
                found.append((change.definition.name, number))
        while len(found) < 60:
            change = await anext(iteration)
            found += [(change.definition.name, change.after["id"])] if change.after else []
    assert found == [("numbers", each) for each in range(40)] + [("later", each) for each in range(40, 60)]
    assert len(listed) < 10 + (listed[-1] - listed[0]) / 5


@one_server
async def test_one_lease_protects_the_dump_from_its_choice_to_its_last_row(
    pipeline: Pipeline, schema: str, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    await execute("INSERT INTO numbers VALUES (1, 1.5)")
    requests: list[str] = []
    original = DumpApi._request

    async def request(self: DumpApi, method: str, path: str, **arguments: Any) -> Any:
        requests.append(f"{method} {path}")
        return await original(self, method, path, **arguments)

    async with Databus(pipeline.url("dump-api")) as databus:
        monkeypatch.setattr(DumpApi, "_request", request)
        iteration = aiter(databus.changes(f"{schema}.*"))
        async with asyncio.timeout(60):
            await anext(iteration)
            await execute("INSERT INTO numbers VALUES (2, 1.5)")
            await anext(iteration)
    leases = [each.split()[0] for each in requests if "/leases" in each]
    assert leases == ["POST", "DELETE"]
    assert requests[-1].startswith("DELETE")


@one_server
async def test_starts_without_a_dump(pipeline: Pipeline, schema: str, execute: Execute) -> None:
    async def numbers_from(start: Any, count: int) -> list[int]:
        async with asyncio.timeout(60), Databus(pipeline.config) as databus:
            iteration = aiter(databus.changes(f"{schema}.*", start=start))
            reading = asyncio.create_task(anext(iteration))
            if start == "latest":
                await eventually(lambda: wrote(reading))
            found = [await reading]
            while len(found) < count:
                found.append(await anext(iteration))
            places.update({change.after["id"]: change.position for change in found if change.after})
            times.update({change.after["id"]: change.time for change in found if change.after})
            return numbers_in(found)

    async def wrote(reading: asyncio.Task[Change]) -> bool:
        """Write until the program, which begins at the end, has read something."""
        written.append(len(written) + 1)
        await execute("INSERT INTO numbers VALUES (%s, 0)", written[-1])
        await asyncio.sleep(0.05)
        return reading.done()

    places: dict[int, Any] = {}
    times: dict[int, Any] = {}
    written = [1, 2, 3]
    for number in written:
        await execute("INSERT INTO numbers VALUES (%s, 0)", number)
    assert await numbers_from("earliest", 3) == [1, 2, 3]
    assert await numbers_from(places[2], 1) == [3]
    assert (await numbers_from(times[1], 3))[-1] == 3
    (first,) = await numbers_from("latest", 1)
    assert first > 3


@one_server
async def test_without_a_bookmark_a_saved_start_is_an_error(pipeline: Pipeline, tmp_path: Path) -> None:
    async with Databus(pipeline.config) as databus:
        with pytest.raises(InvalidSettings, match="the store has no bookmark"):
            await anext(aiter(databus.changes(start="saved", store=tmp_path / "place")))


@one_server
async def test_batches_of_arrow(pipeline: Pipeline, schema: str, execute: Execute) -> None:
    await execute("INSERT INTO numbers VALUES (1, 1.5), (2, NULL)")
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(60), Databus(pipeline.config) as databus:
        async for batch in databus.changes(f"{schema}.*").batches():
            if not found:
                await execute("UPDATE numbers SET balance = 7 WHERE id = 1")
                await execute("ALTER TABLE numbers ADD name VARCHAR(9)")
            if batch.statement:
                break
            found += batch.rows.drop_columns(["_sequence"]).to_pylist()
    half, seven = Decimal("1.50"), Decimal("7.00")
    assert found == [
        {"id": 1, "balance": half, "_action": "insert"},
        {"id": 2, "balance": None, "_action": "insert"},
        {"id": 1, "balance": half, "_action": "update_before"},
        {"id": 1, "balance": seven, "_action": "update_after"},
    ]
    assert [column.name for column in batch.table.columns] == ["id", "balance", "name"]


@one_server
async def test_a_program_without_asyncio(pipeline: Pipeline, schema: str, execute: Execute, tmp_path: Path) -> None:
    await execute("INSERT INTO numbers VALUES (1, 1), (2, 2), (3, 3)")

    def read(count: int) -> list[int]:
        with SyncDatabus(pipeline.url("dump-api")) as databus:
            changes = databus.changes(f"{schema}.*", store=tmp_path / "place")
            found = list(itertools.islice(changes, count))
            databus.ack(found[-1])
            return numbers_in(found)

    assert await asyncio.to_thread(read, 2) == [1, 2]
    assert await asyncio.to_thread(read, 1) == [3]
