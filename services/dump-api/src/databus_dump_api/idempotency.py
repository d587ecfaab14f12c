"""Requests with an `Idempotency-Key`: what a client sends again after a failure is done once.

As in draft-ietf-httpapi-idempotency-key-header: another body with the same key is a 422, and a request whose first
attempt is still being handled is a 409. Redis remembers the keys of a day, for all replicas.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import cast

import msgspec
from redis.asyncio import Redis

from databus_core import names
from databus_core.redis_connection import delete_if_equal, redis_errors
from databus_dump_api.problems import IdempotencyKeyInUse, IdempotencyKeyReused

#: how long a key is remembered
_SECONDS = 24 * 3600
#: how long a request may take, after which its key counts as not used if dump-api was killed meanwhile
_HANDLING_SECONDS = 120


class _Request(msgspec.Struct, frozen=True):
    """A request that was sent with a key."""

    #: hash of the body
    body: str
    #: ids of what it created; None while it is being handled
    created: list[str] | None = None


class IdempotentRequests:
    """The requests of one pipeline. Raises the errors of `redis_errors`."""

    def __init__(self, redis: Redis, pipeline: str) -> None:
        self._redis = redis
        self._pipeline = pipeline

    async def once(
        self, key: str | None, client: str, body: object, create: Callable[[], Awaitable[list[str]]]
    ) -> list[str]:
        """Create what a request asks for, unless the client's earlier request with this key did. Return the ids.

        Raises IdempotencyKeyReused, IdempotencyKeyInUse, and the errors of `create`, after which the key is unused.
        """
        if key is None:
            return await create()
        name = names.idempotency_key(self._pipeline, sha256(f"{client}\n{key}".encode()).hexdigest())
        request = _Request(sha256(msgspec.json.encode(body, order="deterministic")).hexdigest())
        handling = msgspec.json.encode(request)
        with redis_errors():
            earlier = await self._redis.set(name, handling, nx=True, ex=_HANDLING_SECONDS, get=True)
        if earlier is not None:
            return _created(request, msgspec.json.decode(cast(bytes, earlier), type=_Request), key)
        try:
            created = await create()
        except BaseException:
            with redis_errors():
                await delete_if_equal(self._redis, name, handling)
            raise
        with redis_errors():
            await self._redis.set(name, msgspec.json.encode(_Request(request.body, created)), ex=_SECONDS)
        return created


def _created(request: _Request, earlier: _Request, key: str) -> list[str]:
    if request.body != earlier.body:
        raise IdempotencyKeyReused(f"Idempotency-Key {key} was sent with another body: use a new key")
    if earlier.created is None:
        raise IdempotencyKeyInUse(f"the first request with Idempotency-Key {key} is still being handled")
    return earlier.created
