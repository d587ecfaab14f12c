"""Sending the reader to another host: a request and its outcome, as keys in Redis that expire.

Redis may lose either: the request is then made again, by whoever made it.
"""

import secrets
from collections.abc import Awaitable
from typing import Any, cast

import msgspec
from redis.asyncio import Redis

from databus import names

#: a request that no reader has seen by then is no longer wanted
REQUEST_SECONDS = 30
_OUTCOME_SECONDS = 600


class Request(msgspec.Struct, frozen=True):
    """Go to this host."""

    id: str
    host: str


class Outcome(msgspec.Struct, frozen=True):
    """Whether the reader went, and where it is or why not."""

    done: bool
    text: str


_encode = msgspec.json.encode


async def request(redis: Redis, pipeline: str, host: str) -> Request:
    """Ask the reader of a pipeline to go to a host."""
    made = Request(secrets.token_hex(8), host)
    await redis.set(names.switch_key(pipeline), _encode(made), ex=REQUEST_SECONDS)
    return made


async def outcome(redis: Redis, pipeline: str, made: Request, seconds: int) -> Outcome | None:
    """Wait, below the timeout of the client, for what becomes of a request; None when nothing has."""
    answer = await cast(Awaitable[Any], redis.blpop([names.switched_key(pipeline, made.id)], timeout=seconds))
    return msgspec.json.decode(answer[1], type=Outcome) if answer else None


async def pending(redis: Redis, pipeline: str) -> Request | None:
    """Look whether a request waits for the reader."""
    found = await redis.get(names.switch_key(pipeline))
    return msgspec.json.decode(found, type=Request) if found else None


async def settle(redis: Redis, pipeline: str, made: Request, result: Outcome) -> None:
    """Tell what became of a request, which is then over."""
    key = names.switched_key(pipeline, made.id)
    await redis.rpush(key, _encode(result))
    await redis.expire(key, _OUTCOME_SECONDS)
    await redis.delete(names.switch_key(pipeline))


async def keep_host(redis: Redis, pipeline: str, host: str) -> None:
    """Remember the host that the reader is at."""
    await redis.set(names.host_key(pipeline), host)


async def kept_host(redis: Redis, pipeline: str) -> str | None:
    """Give the host that the reader was at last; None where that is not known."""
    found = await redis.get(names.host_key(pipeline))
    return found.decode() if isinstance(found, bytes) else found
