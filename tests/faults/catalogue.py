"""The faults, each with the name under which it is counted. A sleep is the duration of the fault."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from devstack.replication import run
from faults.rig import SUPERVISED, Rig

Do: TypeAlias = Callable[[Rig, Random], Awaitable[None]]


class Fault(NamedTuple):
    """Something that happens, and is over when `do` returns."""

    name: str
    do: Do
    #: the pipeline recovers within a few seconds
    quick: bool


FAULTS: list[Fault] = []


def fault(name: str, *, quick: bool = True) -> Callable[[Do], Do]:
    """Register a fault."""

    def register(do: Do) -> Do:
        FAULTS.append(Fault(name, do, quick))
        return do

    return register


def _of_a_service(service: Literal["reader", "publisher"]) -> None:
    @fault(f"{service}: kill -9")
    async def kill(rig: Rig, random: Random) -> None:
        await rig.kill(service)

    @fault(f"{service}: SIGTERM")
    async def terminate(rig: Rig, random: Random) -> None:
        await rig.terminate(service)

    @fault(f"{service}: SIGSTOP")
    async def pause(rig: Rig, random: Random) -> None:
        async with rig.stopped(rig.pipeline.pid(service)):
            await asyncio.sleep(random.uniform(0.1, 3))

    @fault(f"{service}: kill -9, a standby takes over")
    async def replaced(rig: Rig, random: Random) -> None:
        async with rig.standby(service):
            await rig.kill(service)
            await rig.progress(random.randint(1, 100))

    @fault(f"{service}: SIGSTOP, a standby takes over, SIGCONT")
    async def deposed(rig: Rig, random: Random) -> None:
        async with rig.standby(service):
            async with rig.stopped(rig.pipeline.pid(service)):
                await rig.progress(random.randint(1, 50))
            await rig.progress(random.randint(1, 50))

    @fault(f"{service}: two leaders")
    async def two(rig: Rig, random: Random) -> None:
        async with rig.standby(service):
            await rig.forget_leader(service)
            await rig.progress(random.randint(1, 50))


for _service in SUPERVISED:
    _of_a_service(_service)


@fault("both services: kill -9")
async def _both(rig: Rig, random: Random) -> None:
    await rig.kill("reader", "publisher")


@fault("both services and Redis: kill -9")
async def _all(rig: Rig, random: Random) -> None:
    await rig.kill("reader", "publisher")
    await asyncio.to_thread(rig.stack.restart, "redis")


@fault("Redis: kill -9 and start")
async def _redis_restart(rig: Rig, random: Random) -> None:
    await asyncio.to_thread(rig.stack.restart, "redis")


@fault("Redis: SIGSTOP")
async def _redis_pause(rig: Rig, random: Random) -> None:
    async with rig.stopped(rig.pid("redis")):
        await asyncio.sleep(random.uniform(0.1, 3))


@fault("Redis: FLUSHALL")
async def _redis_flush(rig: Rig, random: Random) -> None:
    await rig.flush_redis()


@fault("Redis: back empty")
async def _redis_empty(rig: Rig, random: Random) -> None:
    await asyncio.to_thread(rig.stack.kill, "redis")
    shutil.rmtree(rig.redis_data)
    await asyncio.to_thread(rig.stack.start, "redis")


@fault("Redis: back with an old state")
async def _redis_rewound(rig: Rig, random: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        await asyncio.to_thread(shutil.copytree, rig.redis_data, old)
        if random.random() < 0.5:  # then a new generation (databus_core.pipe) is opened; otherwise the old one stays
            await rig.kill("publisher")
        await rig.progress(random.randint(1, 100))
        await asyncio.to_thread(rig.stack.kill, "redis")
        shutil.rmtree(rig.redis_data)
        await asyncio.to_thread(shutil.move, old, rig.redis_data)
    await asyncio.to_thread(rig.stack.start, "redis")


@fault("Kafka: kill -9 and start", quick=False)
async def _kafka_restart(rig: Rig, random: Random) -> None:
    await asyncio.to_thread(rig.stack.restart, "kafka")


@fault("Kafka: SIGSTOP")
async def _kafka_pause(rig: Rig, random: Random) -> None:
    async with rig.stopped(rig.pid("kafka")):
        await asyncio.sleep(random.uniform(0.1, 3))


@fault("database: kill -9 and start")
async def _database_restart(rig: Rig, random: Random) -> None:
    await rig.pair.restart(rig.pair.primary)


@fault("database: SIGSTOP")
async def _database_pause(rig: Rig, random: Random) -> None:
    async with rig.stopped(rig.pid(rig.pair.kind)):
        await asyncio.sleep(random.uniform(0.1, 3))


@fault("database: binlog rotated and purged")
async def _purge(rig: Rig, random: Random) -> None:
    await run(rig.pair.primary, "FLUSH BINARY LOGS")
    await rig.decided()  # a server has to keep the binlog from its oldest prepared transaction on
    await rig.progress()
    await rig.pair.caught_up()
    logs = await run(rig.pair.primary, "SHOW BINARY LOGS")
    await run(rig.pair.primary, f"PURGE BINARY LOGS TO '{logs[-1][0]}'")
    await rig.kill("reader")


@fault("database: the primary is killed, its replica takes over")
async def _failover(rig: Rig, random: Random) -> None:
    async with rig.quiet():
        await rig.pair.caught_up()
        former = rig.pair.primary
        await rig.pair.kill(former)
        await rig.pair.promote()
        rig.follow_primary()
    await rig.progress()
    await rig.pair.restart(former)
    await rig.pair.follow()


@fault("database: primary and replica change roles")
async def _switchover(rig: Rig, random: Random) -> None:
    async with rig.quiet():
        await rig.pair.caught_up()
        await rig.pair.promote()
        await rig.pair.follow()
        rig.follow_primary()
    rig.proxies["database"].reset()


def _of_a_network(name: str) -> None:
    @fault(f"network to {name}: half-open", quick=False)
    async def half_open(rig: Rig, random: Random) -> None:
        rig.proxies[name].half_open()
        await asyncio.sleep(random.uniform(0.1, 3))
        rig.proxies[name].heal()

    @fault(f"network to {name}: slow")
    async def slow(rig: Rig, random: Random) -> None:
        rig.proxies[name].slow(random.uniform(0.005, 0.03))
        await rig.progress(random.randint(1, 20))
        rig.proxies[name].heal()

    @fault(f"network to {name}: reset")
    async def reset(rig: Rig, random: Random) -> None:
        rig.proxies[name].reset()


for _dependency in ("database", "redis", "kafka"):
    _of_a_network(_dependency)
