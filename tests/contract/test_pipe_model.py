"""The in-memory Redis of tests/model answers every request of reader and publisher like a real one."""

import random
import secrets
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from databus_core import names, pipe
from devstack import Server
from model.memory_redis import MemoryRedis
from model.turns import Fate

LIBRARY = names.function_library(pipe._SOURCE)
#: tokens of generations (databus_core.pipe explains the term), some of them more likely than others
TOKENS = (b"g1", b"g1", b"g1", b"g1", b"g2", b"")
#: tokens with which readers claim a generation
CLAIMS = (b"r1", b"r1", b"r1", b"r2")


class Step(NamedTuple):
    """A step of a test."""

    function: str  #: a function of pipe.lua; or xread, save or restore, which the test itself does
    args: tuple[Any, ...]


def run(call: Any) -> Any:
    """Run a call of MemoryRedis without an event loop; it stops once, to wait for its turn (see `model.turns`)."""
    call.send(None)
    try:
        call.send(Fate.ANSWERED)
    except StopIteration as done:
        return done.value
    raise AssertionError("the call waits for more than one turn")


@pytest.fixture
async def redis(redis_server: Server) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_server.url) as client:
        await client.function_load(pipe._SOURCE.replace("@LIBRARY@", LIBRARY), replace=True)
        yield client


def steps(rng: random.Random) -> list[Step]:
    """Return random steps, similar enough to real ones that Redis accepts many of them."""
    count = 0

    def step() -> Step:
        nonlocal count
        token, claim = rng.choice(TOKENS), rng.choice(CLAIMS)
        number = rng.choice((count, count, rng.randrange(4)))
        count = rng.choice((count, count + 1, 0))
        return rng.choice(
            [
                Step("open", (token, b"start", rng.randrange(20))),
                Step("claim", (claim,)),
                *[Step("append", (token, claim, number, rng.randbytes(rng.randrange(9)), rng.randrange(20)))] * 5,
                Step("backlog", (token, claim, rng.choice((b"", 20)))),
                Step("trim", (token, number, rng.randrange(20), rng.randrange(20))),
                *[Step("xread", (f"{number}-0", rng.randrange(1, 4)))] * 2,
                Step("save", ()),
                Step("restore", ()),
                Step("retire", (token,)),
            ]
        )

    return [Step("open", (b"g1", b"start", 0)), Step("claim", (b"r1",)), *(step() for _ in range(60))]


@pytest.mark.parametrize("seed", range(12))
async def test_the_model_of_redis_answers_like_redis(redis: Redis, seed: int) -> None:
    pipeline = secrets.token_hex(4)
    keys = (names.generation_key(pipeline), names.stream_key(pipeline))
    memory = MemoryRedis()
    run(memory.function_load(pipe._SOURCE.replace("@LIBRARY@", LIBRARY), replace=True))
    saved_keys, saved_memory = [await redis.dump(key) for key in keys], memory.copy()
    for function, args in steps(random.Random(seed)):
        if function == "save":
            saved_keys, saved_memory = [await redis.dump(key) for key in keys], memory.copy()
        elif function == "restore":  # as after a failover to a replica with older data
            await redis.delete(*keys)
            for key, saved in zip(keys, saved_keys, strict=True):
                if saved is not None:
                    await redis.restore(key, 0, saved)
            memory.store = saved_memory
            saved_keys, saved_memory = [await redis.dump(key) for key in keys], memory.copy()
        elif function == "xread":
            after, count = args
            real = await redis.xread({keys[1]: after}, count=count)
            assert _entries(real) == _entries(run(memory.xread({keys[1]: after}, count=count, block=None)))
        else:
            call = (f"{LIBRARY}_{function}", 2, *keys, *args)
            assert await _answer(redis.fcall(*call)) == _memory_answer(memory, call), (function, args)


async def _answer(call: Any) -> Any:
    try:
        return await call
    except RedisError as error:
        return str(error)


def _memory_answer(memory: MemoryRedis, call: tuple[Any, ...]) -> Any:
    try:
        return run(memory.fcall(*call))
    except ResponseError as error:
        return str(error)


def _entries(answer: Any) -> list[Any]:
    return [(entry_id, fields) for _, found in answer for entry_id, fields in found] if answer else []
