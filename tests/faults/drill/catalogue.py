"""The seven faults of a bad night. Each is mended as the runbook of its alert says."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from redis.asyncio import Redis

from common.connections import connected, session_on
from devstack.pipeline import Service
from devstack.replication import run
from faults.drill.recorder import Recorder
from faults.drill.rig import ACCOUNT, NAME, Rig
from faults.ledger import statements
from faults.volume import resize

#: alerts wait five minutes at most; so long, and a little longer, a fault lasts
_SIX_MINUTES = 360
_PATIENCE_SECONDS = 120


class Fault(NamedTuple):
    """A fault; `do` injects it, mends it, and returns when it is mended."""

    name: str
    do: Callable[[Rig, Recorder], Awaitable[None]]


FAULTS: list[Fault] = []


def fault(name: str) -> Callable[[Callable[[Rig, Recorder], Awaitable[None]]], None]:
    """Register a fault."""

    def register(do: Callable[[Rig, Recorder], Awaitable[None]]) -> None:
        FAULTS.append(Fault(name, do))

    return register


@fault("kafka")
async def _kafka(rig: Rig, see: Recorder) -> None:
    await see.do("Kafka cannot be reached any more", rig.kafka_proxy.stop())
    await see.hold(120)
    await see.do("Kafka can be reached again", rig.kafka_proxy.start())


@fault("redis")
async def _redis(rig: Rig, see: Recorder) -> None:
    async with Redis.from_url(rig.redis.url) as redis:
        await see.do("`FLUSHALL` in Redis", redis.flushall())
    await see.hold(30)


async def _kill_active(rig: Rig, see: Recorder, service: Service) -> None:
    active = await rig.replicas.active(service)
    await see.do(f"`kill -9` of the active {service}", rig.replicas.kill(active))
    see.record.measured["another replica is active"] = await see.logs.until_logged(
        "leadership_acquired", *rig.replicas.of(service)
    )
    await rig.checker.progress(1, _PATIENCE_SECONDS)
    see.record.measured["a transaction that began after the kill is in Kafka"] = see.now


@fault("reader")
async def _reader(rig: Rig, see: Recorder) -> None:
    await _kill_active(rig, see, "reader")


@fault("publisher")
async def _publisher(rig: Rig, see: Recorder) -> None:
    await _kill_active(rig, see, "publisher")


@fault("parked")
async def _parked(rig: Rig, see: Recorder) -> None:
    """A change is logged as a statement. One of the tables has no key, and is too large to be loaded unasked."""
    book = rig.writer.ledger.entries
    await rig.writer.pause()
    change = book.delete(rig.writer.begun)
    book.expected.append(change)
    rig.may_leave_out()
    [(statement, [arguments])] = statements([change])
    see.note(f"`SET SESSION binlog_format = STATEMENT; DELETE FROM {NAME}.{book.name} WHERE …`")
    async with connected(rig.source) as execute:
        for each in (f"USE {NAME}", "SET SESSION binlog_format = STATEMENT"):
            await execute(each)
        await execute(statement, *arguments)
    rig.writer.resume()
    await see.hold(120)
    await see.type("databus status")
    await see.type(f"databus backfill start {NAME}.{book.name} --clean")
    await see.type(f"databus backfill start {NAME}.{book.name} --clean --any-size")


@fault("grant")
async def _grant(rig: Rig, see: Recorder) -> None:
    await see.do(
        "`REVOKE REPLICATION SLAVE` from the services' account, and its connections end",
        run(rig.source, f"REVOKE REPLICATION SLAVE ON *.* FROM {ACCOUNT}@'%'"),
    )
    connections = await run(rig.source, f"SELECT id FROM information_schema.processlist WHERE user = '{ACCOUNT}'")
    async with connected(rig.source) as execute:
        for (number,) in connections:
            await execute(f"KILL {number}")
    await see.hold(_SIX_MINUTES, until=["NoLeader", "Stale"])
    await see.type("databus check --faults")
    await see.do("`GRANT`, as the check says", run(rig.source, f"GRANT REPLICATION SLAVE ON *.* TO {ACCOUNT}@'%'"))
    await see.do("`kubectl delete pod` of both readers", rig.replicas.replace("reader"))


@fault("volume")
async def _volume(rig: Rig, see: Recorder) -> None:
    used = round(sum(file.stat().st_size for file in rig.storage.rglob("*") if file.is_file()) / 2**20)
    see.note("a dump begins, and the volume has 2 MiB left")
    await asyncio.to_thread(resize, rig.storage, f"{used + 2}m")
    await see.type("databus dump create")
    await see.hold(_SIX_MINUTES, until=["DumpFailed", "DumpStorage"])
    await see.type("databus dump list")
    await asyncio.to_thread(resize, rig.storage, "2g")
    see.note("the volume is enlarged")
    await see.type("databus dump create")


@fault("binlog")
async def _binlog(rig: Rig, see: Recorder) -> None:
    rig.may_leave_out()
    await see.do("both readers are stopped; the database deletes its binlogs", rig.replicas.stop("reader"))
    await run(rig.source, "FLUSH BINARY LOGS")
    end = time.monotonic() + _PATIENCE_SECONDS
    async with session_on(rig.source) as session:
        while len(logs := list(await session.logs())) > 1:  # MariaDB keeps an old file for a moment
            if time.monotonic() > end:
                raise TimeoutError("the binlogs cannot be purged")
            await run(rig.source, f"PURGE BINARY LOGS TO '{logs[-1]}'")
    await see.do("the readers are started again", rig.replicas.start("reader"))
    await see.hold(_SIX_MINUTES, until=["NoLeader", "Stale"])
    await see.do("reader and publisher are stopped", rig.replicas.stop("reader", "publisher"))
    await see.type("databus pipeline reset --to snapshot --yes")
    await see.do("reader and publisher are started", rig.replicas.start("reader", "publisher"))
    await see.hold(45)
    await see.type("databus backfill list")
    await see.type(f"databus backfill start {NAME}.{rig.writer.ledger.entries.name} --clean --any-size")
