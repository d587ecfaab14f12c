"""Connections to the neighbours, their errors turned into ours."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalArgumentError,
    InvalidProducerEpoch,
    InvalidTopicError,
    InvalidTransactionTimeout,
    KafkaError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

import databus_binlog
from databus.errors import (
    DatabusError,
    FatalError,
    Fenced,
    InvalidSettings,
    KafkaUnavailable,
    RedisUnavailable,
    Refusal,
    SourceNotReady,
    SourceRefused,
    SourceUnavailable,
)
from databus.settings import RedisSection, Source
from databus_binlog import Session
from databus_binlog.errors import (
    AccessDenied,
    BinlogError,
    DuplicateServerId,
    MissingPrivilege,
    PositionPurged,
    PositionUnknown,
    TlsFailed,
)
from databus_binlog.errors import Retryable as BinlogRetryable

_REDIS_SECONDS = 10

#: the settings that an error of the database's client is about
_SOURCE_SETTINGS: dict[type[BinlogError], str] = {
    AccessDenied: "source.user, source.password, source.tls",
    TlsFailed: "source.tls",
    DuplicateServerId: "reader.server_id",
}

#: what a server says when it does not have the position that it is asked for
_REFUSALS: dict[type[BinlogError], Refusal] = {
    PositionPurged: Refusal.PURGED,
    PositionUnknown: Refusal.OTHER_HISTORY,
}


@asynccontextmanager
async def connect_source(source: Source, host: str | None = None) -> AsyncIterator[Session]:
    """Log in to a host of the database, by default its first.

    An error of the session, now or later, leaves as SourceUnavailable or a FatalError.
    """
    host = host or source.hosts[0]
    with source_errors(host):
        async with databus_binlog.connect(source.login(host)) as session:
            yield session


@contextmanager
def source_errors(host: str) -> Iterator[None]:
    """Turn errors of the database's client into ours."""
    try:
        yield
    except BinlogRetryable as error:
        raise SourceUnavailable(f"database {host}: {error}") from error
    except (AccessDenied, TlsFailed, DuplicateServerId) as error:
        settings = _SOURCE_SETTINGS[type(error)]
        raise SourceNotReady(f"database {host}: {error} (settings: {settings})") from error
    except MissingPrivilege as error:
        raise SourceNotReady(f"database {host}: {error}") from error
    except tuple(_REFUSALS) as error:
        raise SourceRefused(_REFUSALS[type(error)], f"database {host}: {error}") from error
    except BinlogError as error:
        raise FatalError(f"database {host}: {error}") from error


def redis_client(section: RedisSection) -> Redis:
    """Make a client that connects when it is used. Raises InvalidSettings."""
    try:
        return Redis.from_url(section.url, socket_connect_timeout=5, socket_timeout=_REDIS_SECONDS)
    except ValueError as error:
        raise InvalidSettings(f"redis.url: {error}") from error


@asynccontextmanager
async def connect_redis(section: RedisSection) -> AsyncIterator[Redis]:
    """Connect to Redis; its errors, now or later, leave as RedisUnavailable, InvalidSettings or FatalError."""
    redis = redis_client(section)
    with redis_errors():
        async with redis:
            try:
                async with asyncio.timeout(_REDIS_SECONDS):
                    await redis.ping()
            except TimeoutError as error:
                raise RedisUnavailable("Redis does not answer (check redis.url)") from error
            yield redis


@contextmanager
def redis_errors() -> Iterator[None]:
    """Turn errors of redis-py into ours."""
    try:
        yield
    except RedisError as error:
        raise redis_error(error) from error


#: what Redis answers while it, or its cluster, is not well
_PASSING = ("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN")


def redis_error(error: RedisError) -> DatabusError:
    """Tell a Redis that is away or unwell from one that refuses us for good."""
    text = str(error)
    if isinstance(error, AuthenticationError | NoPermissionError) or text.startswith(("NOAUTH", "NOPERM", "WRONGPASS")):
        advice = "set user and password in it" if "NOAUTH" in text else "check user and password"
        return InvalidSettings(f"redis.url: Redis refuses the login: {text} ({advice})")
    away = isinstance(error, RedisConnectionError | RedisTimeoutError | ReadOnlyError | OutOfMemoryError)
    if away or text.startswith(_PASSING):
        return RedisUnavailable(f"Redis does not serve: {text} (check redis.url)")
    return FatalError(f"Redis refuses: {text} (check redis.url; Redis 7 or newer is needed)")


#: Kafka will say the same tomorrow
_KAFKA_REFUSALS = (
    ClusterAuthorizationFailedError,
    IllegalArgumentError,
    InvalidTopicError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Turn aiokafka's errors into ours."""
    try:
        yield
    except KafkaError as error:
        raise _translate(error) from error


def _translate(error: KafkaError) -> DatabusError:
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        return Fenced("another publisher of this pipeline is active")
    if isinstance(error, InvalidTransactionTimeout):
        return InvalidSettings(
            "publisher.transaction_timeout: the broker allows no such time; raise its transaction.max.timeout.ms"
        )
    if isinstance(error, _KAFKA_REFUSALS):
        return FatalError(f"Kafka refuses: {error}")
    return KafkaUnavailable(f"Kafka does not serve: {error} (check kafka.bootstrap_servers)")
