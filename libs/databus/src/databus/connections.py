"""Connections to the neighbours, their errors turned into ours."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalArgumentError,
    InvalidProducerEpoch,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError

import databus_binlog
from databus.errors import (
    DatabusError,
    FatalError,
    Fenced,
    InvalidSettings,
    KafkaUnavailable,
    RecordTooLarge,
    RedisUnavailable,
    SourceNotReady,
    SourceUnavailable,
)
from databus.settings import RedisSection, Source
from databus_binlog import Session
from databus_binlog.errors import AccessDenied, BinlogError, DuplicateServerId, MissingPrivilege, PositionPurged
from databus_binlog.errors import Retryable as BinlogRetryable


@asynccontextmanager
async def connect_source(source: Source) -> AsyncIterator[Session]:
    """Log in to the database; an error of the session, now or later, leaves as SourceUnavailable or a FatalError."""
    host, port = source.address
    try:
        async with databus_binlog.connect(
            host=host,
            port=port,
            user=source.user,
            password=source.password.get_secret_value(),
            connect_timeout=source.connect_timeout,
        ) as session:
            yield session
    except BinlogRetryable as error:
        raise SourceUnavailable(f"database {host}:{port}: {error}") from error
    except (AccessDenied, MissingPrivilege, PositionPurged, DuplicateServerId) as error:
        raise SourceNotReady(f"database {host}:{port}: {error}") from error
    except BinlogError as error:
        raise FatalError(f"database {host}:{port}: {error}") from error


@asynccontextmanager
async def connect_redis(section: RedisSection) -> AsyncIterator[Redis]:
    """Connect to Redis. Raises RedisUnavailable, or InvalidSettings where it refuses the login."""
    try:
        redis: Redis = Redis.from_url(section.url, socket_connect_timeout=5)
    except ValueError as error:
        raise InvalidSettings(f"redis.url: {error}") from error
    async with redis:
        try:
            await redis.ping()
        except AuthenticationError as error:
            raise InvalidSettings(f"redis.url: Redis refuses the login: {error}") from error
        except RedisConnectionError as error:
            raise RedisUnavailable(f"Redis does not answer: {error} (check redis.url)") from error
        yield redis


#: Kafka will say the same tomorrow
_REFUSALS = (
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
        return Fenced("another publisher of this pipeline is active; run only one")
    if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError):
        return RecordTooLarge(f"Kafka refuses a record: {error}; raise max.message.bytes of its topic")
    if isinstance(error, _REFUSALS):
        return FatalError(f"Kafka refuses: {error}")
    return KafkaUnavailable(f"Kafka does not serve: {error} (check kafka.bootstrap_servers)")
