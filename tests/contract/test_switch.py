"""A request to switch the reader to another host, and its answer, in a real Redis."""

import secrets

from redis.asyncio import Redis

from databus_core import switch
from databus_core.switch import SwitchResult
from devstack import Server

PIPELINE = secrets.token_hex(4)


async def test_an_answer_leaves_a_newer_request_for_the_reader(redis_server: Server) -> None:
    async with Redis.from_url(redis_server.url) as redis:
        older = await switch.request(redis, PIPELINE, "db1:3306")
        newer = await switch.request(redis, PIPELINE, "db2:3306")
        await switch.answer(redis, PIPELINE, older, SwitchResult(True, "the reader is at db1:3306"))
        assert await switch.pending(redis, PIPELINE) == newer
        await switch.answer(redis, PIPELINE, newer, SwitchResult(True, "the reader is at db2:3306"))
        assert await switch.pending(redis, PIPELINE) is None
        found = await switch.result(redis, PIPELINE, newer, seconds=1)
        assert found == SwitchResult(True, "the reader is at db2:3306")
