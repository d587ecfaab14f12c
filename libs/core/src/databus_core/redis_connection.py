"""Clients of Redis; errors of redis-py turned into ours."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import (
    AuthenticationError,
    ClusterDownError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from databus_core.client_tls import tls_alert, tls_context, tls_refusal
from databus_core.errors import DatabusError, FatalError, InvalidSettings, RedisUnavailable
from databus_core.settings import RedisSection
from databus_core.wrong_server import wrong_server

_REDIS_SECONDS = 10
_MAX_CONNECTIONS = 50
_DELETE = """#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
"""


def redis_client(section: RedisSection) -> Redis:
    """Return a client that connects on first use. Raises InvalidSettings for a wrong URL."""
    try:
        # Hundreds of downloads may need Redis at once: they wait for one another, and do not fail.
        pool = BlockingConnectionPool.from_url(
            section.url,
            max_connections=_MAX_CONNECTIONS,
            timeout=_REDIS_SECONDS,
            socket_connect_timeout=5,
            socket_timeout=_REDIS_SECONDS,
            **_options(section),
        )
    except ValueError as error:
        raise InvalidSettings(f"redis.url: {error}") from error
    return Redis.from_pool(pool)


def _options(section: RedisSection) -> dict[str, Any]:
    """Return redis-py's options for what the URL does not contain."""
    options: dict[str, Any] = {}
    if section.username:
        options["username"] = section.username
    if password := section.password.get_secret_value():
        options["password"] = password
    if tls := section.tls:
        options |= {
            "ssl_ca_certs": tls.ca_file and str(tls.ca_file),
            "ssl_certfile": tls.cert_file and str(tls.cert_file),
            "ssl_keyfile": tls.key_file and str(tls.key_file),
            "ssl_password": tls.key_password.get_secret_value() or None,
            "ssl_check_hostname": tls.verify_hostname,
            # As of Python 3.13, it refuses authorities without certain extensions, such as those of many companies.
            "ssl_exclude_verify_flags": [ssl.VERIFY_X509_STRICT],
        }
    return options


@asynccontextmanager
async def connect_redis(section: RedisSection) -> AsyncIterator[Redis]:
    """Connect to Redis. Errors of redis-py leave the block as RedisUnavailable, InvalidSettings or FatalError."""
    redis = redis_client(section)
    with redis_errors():
        async with redis:
            try:
                async with asyncio.timeout(_REDIS_SECONDS):
                    await redis.ping()
            except TimeoutError as error:
                raise await _explained(RedisUnavailable("Redis does not answer (check redis.url)"), section) from error
            except (RedisConnectionError, InvalidResponse) as error:
                raise await _explained(redis_error(error), section) from error
            yield redis


async def _explained(error: DatabusError, section: RedisSection) -> DatabusError:
    """Return the reason for an error, if it can be found: our certificate is refused, or the server is not Redis."""
    address = urlsplit(section.url)
    if address.scheme == "unix" or isinstance(error, InvalidSettings):
        return error
    host, port = address.hostname or "localhost", address.port or 6379
    if address.scheme == "rediss":
        alert = await tls_alert(host, port, tls_context(section.tls, "redis"))
        if refused := tls_refusal("Redis", "redis", alert):
            return refused
    if other := await wrong_server(host, port, "Redis"):
        return InvalidSettings(f"{host}:{port} is {other}, not Redis (check redis.url)")
    return error


async def delete_if_equal(redis: Redis, key: str, value: str | bytes) -> None:
    """Delete a key, unless another client has set it to another value meanwhile."""
    await redis.register_script(_DELETE)(keys=[key], args=[value])


@contextmanager
def redis_errors() -> Iterator[None]:
    """Turn errors of redis-py into ours."""
    try:
        yield
    except RedisError as error:
        raise redis_error(error) from error


#: errors that pass by themselves: Redis is unreachable, starting, failing over, full or busy. redis-py has classes for
#: most of them (LOADING is a ConnectionError, MASTERDOWN a ClusterDownError) and removes the code from their text.
_PASSING = (
    RedisConnectionError,
    RedisTimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    ClusterDownError,
    TryAgainError,
)
#: codes of errors that pass, but for which redis-py has no class; it leaves these codes in the text
_PASSING_CODES = ("BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED")


def redis_error(error: RedisError) -> DatabusError:
    """Return the error of ours: RedisUnavailable if it may pass by itself, else one that needs an operator."""
    text = str(error)
    if isinstance(error, NoPermissionError):
        return InvalidSettings(f"Redis denies access: {text} (grant the account this right)")
    if isinstance(error, AuthenticationError):
        missing = getattr(error, "status_code", None) == "NOAUTH"
        advice = "set redis.password_file" if missing else "check redis.username and redis.password_file"
        return InvalidSettings(f"Redis refuses the login: {text} ({advice})")
    if refused := tls_refusal("Redis", "redis", error.__cause__ or error.__context__):
        return refused
    if isinstance(error, _PASSING) or text.startswith(_PASSING_CODES):
        return RedisUnavailable(f"Redis is unavailable: {text} (check redis.url)")
    return FatalError(f"Redis refuses: {text} (check redis.url; Redis 7 or newer is needed)")
