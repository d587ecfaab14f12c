"""XA transactions in two phases are published when they are committed, also after restarts and failovers."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from asyncmy.errors import DatabaseError

from common.connections import connected
from common.pipelines import Changes, Consume, MakePipeline
from common.waiting import eventually
from databus_cli.__main__ import main
from databus_core.errors import START_OVER, skip_advice
from databus_core.kafka_progress import read_progress
from databus_core.settings import load
from devstack import Server
from devstack.pipeline import Pipeline
from devstack.replication import Pair, run
from devstack.stack import Stack
from integration.host_account import ACCOUNT, address

_TRANSACTIONS = 250
#: rows that exist from the start; each open transaction has changed another one
_ROWS = 60


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, pair: Pair) -> Pipeline:
    hosts = [address(server) for server in pair.servers]
    return make_pipeline(pair.primary, "shop", source={"hosts": hosts, "password_file": None} | ACCOUNT)


@dataclass
class Workload:
    """Interleaved XA transactions on table shop.x, some of which stay prepared for a while."""

    random: random.Random
    #: number → row that the prepared transaction has updated
    open: dict[int, int] = field(default_factory=dict)
    #: ids of the rows that committed transactions have inserted
    inserted: list[int] = field(default_factory=list)

    async def prepare(self, server: Server, number: int) -> None:
        """Prepare a transaction in a session of its own, and disconnect: any other session can decide it then."""
        row = self.random.choice([row for row in range(1, _ROWS) if row not in self.open.values()])
        statements = [
            f"UPDATE shop.x SET v = {number} WHERE id = {row}",
            f"INSERT INTO shop.x VALUES ({1000 + number}, 0)",
        ]
        if self.inserted and self.random.random() < 0.3:
            gone = self.inserted.pop(self.random.randrange(len(self.inserted)))
            statements.append(f"DELETE FROM shop.x WHERE id = {gone}")
        async with connected(server) as execute:
            await execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            for statement in (f"XA START 'x{number}'", *statements, f"XA END 'x{number}'", f"XA PREPARE 'x{number}'"):
                await execute(statement)
        self.open[number] = row

    async def decide(self, server: Server, number: int) -> None:
        verb = self.random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        del self.open[number]
        await decide(server, f"XA {verb} 'x{number}'")
        if verb == "COMMIT":
            self.inserted.append(1000 + number)

    async def go(self, server: Server, numbers: range) -> None:
        for number in numbers:
            await self.prepare(server, number)
            if self.random.random() < 0.2:
                await run(server, f"UPDATE shop.x SET v = v - 1 WHERE id = {_ROWS}")
            while len(self.open) > 30 or (len(self.open) > 10 and self.random.random() < 0.5):
                await self.decide(server, self.random.choice(list(self.open)))


async def decide(server: Server, statement: str) -> None:
    """Commit or roll back a transaction as soon as the server has noticed that its session is gone."""

    async def decided() -> bool:
        with suppress(DatabaseError):
            await run(server, statement)
            return True
        return False

    await eventually(decided, seconds=10)


class Mirror:
    """A table to which a consumer applies all changes. Each marker is a row with a negative id."""

    def __init__(self, consumer: Changes) -> None:
        self._consumer = consumer
        self.table: dict[int, int] = {}

    async def until(self, marker: int) -> None:
        while marker not in self.table:
            for message in await self._consumer.until(1):
                self._apply(message["Action"], [(int(row[0]), int(row[1])) for row in message.get("Rows", [])])

    def _apply(self, action: str, rows: list[tuple[int, int]]) -> None:
        match action:
            case "insert":
                assert not self.table.keys() & dict(rows).keys()
                self.table |= dict(rows)
            case "update":
                for before, after in zip(rows[::2], rows[1::2], strict=True):
                    assert self.table[before[0]] == before[1]
                    self.table[after[0]] = after[1]
            case "delete":
                for id_, v in rows:
                    assert self.table.pop(id_) == v


async def test_interleaved_xa_transactions_survive_restarts_and_a_failover(
    pair: Pair, pipeline: Pipeline, changes: Consume
) -> None:
    first, second = pair.servers
    workload = Workload(random.Random(7))
    await run(first, "CREATE TABLE shop.x (id INT PRIMARY KEY, v INT)")
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    await asyncio.to_thread(pipeline.wait, "reader")
    mirror = Mirror(await changes(f"{pipeline.name}.shop.x"))
    await run(first, f"INSERT INTO shop.x VALUES {', '.join(f'({row}, 0)' for row in range(1, _ROWS + 1))}")
    disturbances: list[Callable[[], Awaitable[object]]] = [
        lambda: restarted(pipeline, "reader", pipeline.kill),
        lambda: restarted(pipeline, "publisher", pipeline.kill),
        lambda: restarted(pipeline, "reader", pipeline.stop),
        lambda: failed_over(pair),
        lambda: pair.restart(second),
        lambda: restarted(pipeline, "publisher", pipeline.stop),
        lambda: restarted(pipeline, "reader", pipeline.kill),
    ]
    step = _TRANSACTIONS // len(disturbances) + 1
    for index, disturb in enumerate(disturbances):
        await workload.go(pair.primary, range(index * step, min(_TRANSACTIONS, (index + 1) * step)))
        await run(pair.primary, f"INSERT INTO shop.x VALUES ({-1 - index}, 0)")
        await mirror.until(-1 - index)
        assert workload.open
        await disturb()
    for number in list(workload.open):
        await workload.decide(pair.primary, number)
    await run(pair.primary, "INSERT INTO shop.x VALUES (-100, 0)")
    await mirror.until(-100)
    assert mirror.table == dict(await run(pair.primary, "SELECT id, v FROM shop.x"))
    log = pipeline.log("reader").read_text()
    assert (log.count(" prepared_read: ") > 10, log.count(" prepared_searched: ")) == (True, 0)
    progress = await read_progress(load(pipeline.config))
    assert progress and progress.prepared == ()


async def restarted(pipeline: Pipeline, service: str, end: Callable[[str], None]) -> None:
    await asyncio.to_thread(end, service)
    pipeline.spawn(service)


async def failed_over(pair: Pair) -> None:
    await pair.caught_up()
    await pair.kill(pair.primary)
    await pair.promote()


async def test_rows_that_were_prepared_before_the_pipeline_began_are_published_when_they_are_committed(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume
) -> None:
    pipeline = make_pipeline(source, schema)
    await run(source, f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", f"CREATE DATABASE {schema}_other",
              f"CREATE TABLE {schema}_other.t (id INT PRIMARY KEY)")  # fmt: skip
    for xid, name in (("c", f"{schema}_other"), ("b", schema), ("a", schema)):
        async with connected(source) as execute:
            for statement in (
                "XA START {}",
                f"INSERT INTO {name}.t VALUES (1{ord(xid)})",
                "XA END {}",
                "XA PREPARE {}",
            ):
                await execute(statement.format(f"'{schema}','{xid}'"))
        await run(source, "FLUSH BINARY LOGS")
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    await asyncio.to_thread(pipeline.wait, "reader")
    for outcome, xid in (("COMMIT", "c"), ("ROLLBACK", "b"), ("COMMIT", "a")):
        await decide(source, f"XA {outcome} '{schema}','{xid}'")
    await run(source, f"INSERT INTO {schema}.t VALUES (2)", f"DROP DATABASE {schema}_other")
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(2)
    assert [message["Rows"] for message in found] == [[[b"197"]], [[b"2"]]]
    assert pipeline.log("reader").read_text().count(" prepared_searched: ") == 1


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_commit_that_mariadb_logs_after_a_crash_publishes_rows_that_were_not_published_before(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume
) -> None:
    """A crash between binlog and engine leaves a transaction prepared; here one that is not logged stands for it."""
    pipeline, table = make_pipeline(source, schema), f"{schema}.t"
    await run(source, f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    await asyncio.to_thread(pipeline.wait, "reader")
    for row, first in ((1, "COMMIT"), (2, "ROLLBACK")):
        xid = f"'{schema}{row}'"
        work = (f"XA START {xid}", f"INSERT INTO {table} VALUES ({row})", f"XA END {xid}", f"XA PREPARE {xid}")
        await run(source, *work, f"XA {first} {xid}")
        await run(source, "SET sql_log_bin = 0", f"DELETE FROM {table} WHERE id = {row}", *work)
        await run(source, "FLUSH BINARY LOGS")  # as at a start
        await decide(source, f"XA COMMIT {xid}")
    await run(source, f"INSERT INTO {table} VALUES (3)")
    found = await (await changes(f"{pipeline.name}.{table}")).until(3)
    assert [message["Rows"] for message in found] == [[[b"1"]], [[b"2"]], [[b"3"]]]
    log = pipeline.log("reader").read_text()
    assert (log.count(" prepared_searched: "), log.count(" committed_again: ")) == (2, 1)


async def purged(server: Server) -> bool:
    """Purge the first file. A server keeps it as long as it needs it itself."""
    await run(server, "PURGE BINARY LOGS TO 'binlog.000002'")
    return (await run(server, "SHOW BINARY LOGS"))[0][0] != "binlog.000001"


@pytest.fixture(params=["mariadb", "mysql"])
def nameless(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server whose binlog does not name columns, and on MySQL has no GTIDs."""
    stack = Stack(tmp_path / "server", own=True)
    options = ["--binlog-row-metadata=MINIMAL", "--log-bin=binlog", "--server-id=9"]
    if request.param == "mysql":
        options += ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]
    yield stack.start(request.param, *options)
    stack.discard()


async def test_a_commit_is_read_again_without_column_names_and_can_be_skipped_if_the_binlog_is_purged(
    make_pipeline: MakePipeline, nameless: Server, changes: Consume
) -> None:
    pipeline = make_pipeline(nameless, "shop")
    await run(nameless, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(9))")
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    await asyncio.to_thread(pipeline.wait, "reader")
    consumer = await changes(f"{pipeline.name}.shop.t")
    for number, xid in enumerate(("read", "rolled back", "purged"), 1):
        async with connected(nameless) as execute:
            for statement in (
                "XA START {}",
                f"INSERT INTO shop.t VALUES ({number}, 'x')",
                "XA END {}",
                "XA PREPARE {}",
            ):
                await execute(statement.format(f"'{xid}'"))
    await run(nameless, "INSERT INTO shop.t VALUES (10, 'y')")
    assert [message["Rows"] for message in await consumer.until(1)] == [[[b"10", b"y"]]]
    await asyncio.to_thread(pipeline.stop, "reader")
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait, "reader")
    await decide(nameless, "XA COMMIT 'read'")
    [message] = await consumer.until(1)
    assert message["Rows"] == [[b"1", b"x"]]
    assert [column["Name"] for column in message["Table"]["Columns"]] == ["id", "name"]

    await run(nameless, "FLUSH BINARY LOGS", "INSERT INTO shop.t VALUES (11, 'y')")
    assert [message["Rows"] for message in await consumer.until(1)] == [[[b"11", b"y"]]]
    await eventually(partial(purged, nameless), seconds=10)
    await decide(nameless, "XA ROLLBACK 'rolled back'")
    await run(nameless, "INSERT INTO shop.t VALUES (12, 'y')")
    assert [message["Rows"] for message in await consumer.until(1)] == [[[b"12", b"y"]]]
    await decide(nameless, "XA COMMIT 'purged'")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 30)
    [failure] = [line for line in pipeline.log("reader").read_text().splitlines() if " failed: " in line]
    assert f"XA transaction X'{b'purged'.hex()}',X'',1, prepared at binlog.000001:" in failure
    [transaction] = re.findall(r"run `databus pipeline skip --transaction (\S+)`", failure)
    skip_it = f"name another host that has them in source.hosts; {skip_advice(transaction)}; {START_OVER}"
    assert skip_it in failure

    options = ["pipeline", "skip", "--transaction", transaction, "--yes", "--config", str(pipeline.config)]
    assert await asyncio.to_thread(main, options) == 0
    pipeline.spawn("reader")
    truncate, insert = await consumer.until(2)
    assert truncate["Action"] == "truncate"
    assert [row[0] for row in insert["Rows"]] == [b"1", b"3", b"10", b"11", b"12"]
