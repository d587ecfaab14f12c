"""All clients of Kafka but Spark's and devstack's are made here: security and errors are the same for all of them.

`consumer`, `admin` and `producer` start a client before their block and always stop it afterwards. Errors of aiokafka
leave the block as errors of ours; those after a failed connection give the reason, if it can be found.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal, TypeAlias

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError

from databus_core.cancellation import raise_if_cancelled
from databus_core.client_tls import tls_context
from databus_core.kafka_errors import explain, translate
from databus_core.kafka_stop import stop_producer
from databus_core.settings import Kafka

Isolation: TypeAlias = Literal["read_committed", "read_uncommitted"]

#: timeout for the start of a client; without a transaction coordinator aiokafka would retry for ever
_START_SECONDS = 30
#: how long a start that is cancelled may still take
_LATE_START_SECONDS = 1
#: how long a producer that is being stopped may take to deliver what was sent
_STOP_SECONDS = 5
#: timeout for the next records of a partition; without a partition leader aiokafka would wait for ever
_READ_SECONDS = 60


@asynccontextmanager
async def consumer(
    kafka: Kafka, isolation: Isolation = "read_committed", *, group: str | None = None, strict: bool = False
) -> AsyncIterator[AIOKafkaConsumer]:
    """Connect as a consumer; the caller assigns the partitions. Offsets can be committed only to a group.

    With `strict`, reading an offset that Kafka does not have any more raises OffsetOutOfRangeError, and does not
    continue at the end.
    """
    client = AIOKafkaConsumer(
        **_options(kafka),
        isolation_level=isolation,
        enable_auto_commit=False,
        group_id=group,
        auto_offset_reset="none" if strict else "latest",
    )
    async with _running(kafka, client):
        yield client


@asynccontextmanager
async def admin(kafka: Kafka) -> AsyncIterator[AIOKafkaAdminClient]:
    """Connect as an administrator."""
    client = AIOKafkaAdminClient(**_options(kafka))
    async with _running(kafka, client):
        yield client


@asynccontextmanager
async def producer(
    kafka: Kafka, transactional_id: str | None = None, transaction_timeout: float = 60.0
) -> AsyncIterator[AIOKafkaProducer]:
    """Connect as an idempotent producer. With a transactional id, it is a transactional one and fences its predecessor.

    `transaction_timeout` is in seconds.
    """
    client = AIOKafkaProducer(
        **_options(kafka),
        enable_idempotence=True,
        transactional_id=transactional_id,
        transaction_timeout_ms=int(transaction_timeout * 1000),
    )
    async with _running(kafka, client):
        yield client


async def records(
    reading: AIOKafkaConsumer, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> AsyncGenerator[ConsumerRecord[Any, Any]]:
    """Yield the records between two offsets of each of the consumer's partitions, which are read at the same time.

    That is faster than one after the other: at its end, a partition lets the fetch of the next one wait.

    Raises KafkaTimeoutError after 60 s without records.
    """
    ends = {partition: end for partition, (begin, end) in ranges.items() if begin < end}
    for partition in ends:
        reading.seek(partition, ranges[partition][0])
    while ends:
        waiting = ends
        try:
            async with asyncio.timeout(_READ_SECONDS):
                while not (found := await reading.getmany(*ends, timeout_ms=200)) and waiting == ends:
                    waiting = {each: end for each, end in ends.items() if await reading.position(each) < end}
        except TimeoutError as error:
            topic = next(iter(ends)).topic
            raise KafkaTimeoutError(f"no records of topic {topic} for {_READ_SECONDS} s") from error
        for partition, batch in found.items():
            for record in batch:
                if record.offset < ends[partition]:
                    yield record
        ends = {each: end for each, end in ends.items() if await reading.position(each) < end}


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Turn errors of aiokafka inside the block into ours, without a search for the reason of a failed connection."""
    try:
        yield
    except KafkaError as error:
        raise translate(error) from error


def _options(kafka: Kafka) -> dict[str, Any]:
    return {"bootstrap_servers": kafka.bootstrap_servers} | _connection(kafka)


def _connection(kafka: Kafka) -> dict[str, Any]:
    """Return aiokafka's options for a connection. Raises InvalidSettings if certificates can no longer be read."""
    options: dict[str, Any] = {"client_id": "databus", "security_protocol": kafka.security_protocol}
    if kafka.encrypted:
        options["ssl_context"] = tls_context(kafka.tls, "kafka")
    if sasl := kafka.sasl:
        options["sasl_mechanism"] = sasl.mechanism
        if sasl.oauth:
            # Importing httpx, which this needs, takes a sixth of a service's start.
            from databus_core.kafka_oauth import tokens  # noqa: PLC0415

            options["sasl_oauth_token_provider"] = tokens(sasl.oauth)
        else:
            options["sasl_plain_username"] = sasl.username
            options["sasl_plain_password"] = sasl.password.get_secret_value()
    return options


@asynccontextmanager
async def _running(kafka: Kafka, client: Any) -> AsyncIterator[None]:
    try:
        try:
            async with asyncio.timeout(_START_SECONDS):
                await _start(client)
        except TimeoutError as error:
            raise KafkaTimeoutError(f"no answer within {_START_SECONDS} s") from error
        except AssertionError as error:  # a producer asserts that there are brokers; after a refused token it gets none
            raise KafkaConnectionError("the broker's answer lists no brokers") from error
        yield
    except KafkaError as error:
        raise await explain(error, kafka, _brokers(client), _connection(kafka)) from error
    finally:
        # While it stops, aiokafka cannot tell a cancellation of our task from those of its own tasks. It may swallow
        # ours, or raise the CancelledError of one of its tasks, which would hide the error that leaves the block.
        with suppress(asyncio.CancelledError):
            await _stop(client)
        raise_if_cancelled()


async def _start(client: Any) -> None:
    """Start a client. A cancelled start has a second to end: else aiokafka leaves a connection open."""
    starting = asyncio.ensure_future(client.start())
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait({starting}, timeout=_LATE_START_SECONDS)
        raise
    finally:
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
        if not starting.cancelled():
            starting.exception()  # if there is one, it was raised above, or a cancellation in its place


async def _stop(client: Any) -> None:
    if isinstance(client, AIOKafkaAdminClient):
        await client.close()
    elif isinstance(client, AIOKafkaConsumer):
        await client.stop()
    else:
        await stop_producer(client, _STOP_SECONDS)


def _brokers(client: Any) -> set[str]:
    """List the brokers that the client knows, as `host:port`."""
    cluster = (client.client if isinstance(client, AIOKafkaProducer) else client._client).cluster
    return {f"{broker.host}:{broker.port}" for broker in cluster.brokers()}
