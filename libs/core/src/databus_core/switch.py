"""Switch the reader to another host of the database: a request and its result, as expiring keys in Redis.

Redis may lose the request or the result. The client then gets no result and has to repeat the request.
"""

import secrets
from collections.abc import Awaitable
from typing import Any, cast

import msgspec
from redis.asyncio import Redis

from databus_core import names
from databus_core.redis_connection import delete_if_equal

#: time after which a request that was not answered expires
REQUEST_SECONDS = 30
#: time after which a result that no client has read expires
_RESULT_SECONDS = 600


class SwitchRequest(msgspec.Struct, frozen=True):
    """A request to switch to a host, as `host:port`."""

    id: str
    host: str


class SwitchResult(msgspec.Struct, frozen=True):
    """Whether the reader now reads from the requested host, and a message for the operator."""

    done: bool
    text: str


_encode = msgspec.json.encode


async def request(redis: Redis, pipeline: str, host: str) -> SwitchRequest:
    """Request a switch of the pipeline's reader to a host."""
    switch = SwitchRequest(secrets.token_hex(8), host)
    await redis.set(names.switch_key(pipeline), _encode(switch), ex=REQUEST_SECONDS)
    return switch


async def result(redis: Redis, pipeline: str, switch: SwitchRequest, seconds: int) -> SwitchResult | None:
    """Wait for the result of a request; None if there is none after `seconds`.

    `seconds` must be less than the client's socket timeout.
    """
    popped = await cast(Awaitable[Any], redis.blpop([names.switched_key(pipeline, switch.id)], timeout=seconds))
    return msgspec.json.decode(popped[1], type=SwitchResult) if popped else None


async def pending(redis: Redis, pipeline: str) -> SwitchRequest | None:
    """Read the request that the reader has not answered yet, if there is one."""
    found = await redis.get(names.switch_key(pipeline))
    return msgspec.json.decode(found, type=SwitchRequest) if found else None


async def answer(redis: Redis, pipeline: str, switch: SwitchRequest, outcome: SwitchResult) -> None:
    """Publish the result of a request, and remove the request, unless a newer one has replaced it."""
    key = names.switched_key(pipeline, switch.id)
    await redis.rpush(key, _encode(outcome))
    await redis.expire(key, _RESULT_SECONDS)
    await delete_if_equal(redis, names.switch_key(pipeline), _encode(switch))


async def store_host(redis: Redis, pipeline: str, host: str) -> None:
    """Store the host that the reader reads."""
    await redis.set(names.host_key(pipeline), host)


async def stored_host(redis: Redis, pipeline: str) -> str | None:
    """Return the host that the reader, or its predecessor, read last; None if it is not known."""
    found = await redis.get(names.host_key(pipeline))
    return found.decode() if isinstance(found, bytes) else found
