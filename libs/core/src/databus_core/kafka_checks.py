"""Checks of Kafka: the pipeline's state, its rights, and the broker's limits. Nothing is created."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient

from databus_core import kafka_client, names
from databus_core.checks import Check, Result, Warned, results
from databus_core.errors import DatabusError, TopicRefused, WriteDenied
from databus_core.events import Table
from databus_core.kafka_history import SchemaHistory, read_history
from databus_core.kafka_progress import read_progress
from databus_core.kafka_rights import may_write
from databus_core.kafka_table_states import read_states
from databus_core.kafka_topics import DEFAULT_MAX_MESSAGE_BYTES, broker_settings, create_topic, partition_counts
from databus_core.pipeline_state import ensure_state_topics, require_new
from databus_core.progress import Progress
from databus_core.redis_connection import connect_redis
from databus_core.settings import Settings
from databus_core.settings.topic_claims import TopicClaims, require_topics
from databus_core.table_filter import sample


class KafkaContext(NamedTuple):
    """A connection to Kafka, and the pipeline's settings."""

    settings: Settings
    admin: AIOKafkaAdminClient

    async def history(self) -> SchemaHistory:
        """Read the schema history."""
        return await read_history(self.settings)

    async def captured(self) -> list[Table]:
        """Read the tables of the schema history that are captured."""
        captures = self.settings.source.captures
        return [table for name, table in (await self.history()).tables.items() if captures(*name)]


async def kafka_results(settings: Settings, checks: Sequence[Check[KafkaContext]]) -> list[Result]:
    """Connect to Kafka and make checks."""
    return await results("Kafka", _connect(settings), checks, kafka_client.kafka_errors)


async def known_progress(settings: Settings) -> Progress | None:
    """Read the progress; None also if it cannot be read, which is what another check reports."""
    try:
        return await read_progress(settings)
    except DatabusError:
        return None


@asynccontextmanager
async def _connect(settings: Settings) -> AsyncIterator[KafkaContext]:
    async with kafka_client.admin(settings.kafka) as admin:
        yield KafkaContext(settings, admin)


async def _state_topics(kafka: KafkaContext) -> str:
    await ensure_state_topics(kafka.admin, kafka.settings, validate_only=True)
    return "exist or may be created, with one partition and cleanup.policy=compact"


async def _progress(kafka: KafkaContext) -> str:
    progress = await read_progress(kafka.settings)
    if progress and progress.position:
        return f"{progress.transaction} is the last published transaction"
    if progress is None:
        async with connect_redis(kafka.settings.redis) as redis:
            await require_new(kafka.settings, redis)
    return "the pipeline has not begun"


async def _history(kafka: KafkaContext) -> str:
    return f"known tables: {len((await kafka.history()).tables)}"


async def _states(kafka: KafkaContext) -> str:
    states, _end = await read_states(kafka.settings)
    if states.doubts:
        raise Warned(f"Kafka: tables in doubt: {len(states.doubts)}: `databus status` says why and what to do")
    return "no table is in doubt"


async def _topics(kafka: KafkaContext) -> str:
    """Check that each known table has a topic of its own."""
    require_topics(kafka.settings, (await kafka.history()).by_claim())
    return "each known table has one"


async def _rights(kafka: KafkaContext) -> str:
    """Check that the topics of changes exist and may be written, or may be created.

    Of a new pipeline no table is known: a name is tried that matches each pattern of `source.include`. It is a warning
    if this is refused, because the topics of the tables that there are may exist.
    """
    settings, faults = kafka.settings, []
    existing = await partition_counts(kafka.admin)
    known = [name for name in (await kafka.history()).by_claim() if settings.source.captures(*name)]
    claims = TopicClaims(settings.publisher.rules, settings.name, folded=True)
    tables = known or [sample(pattern) for pattern in settings.source.include]
    wanted = [found.topic for table in tables for found in claims.claim(*table) if not found.fault]
    for topic in dict.fromkeys([*wanted, names.dead_letter_topic(settings.name)]):
        try:
            await _require_right(kafka, topic, exists=topic in existing)
        except TopicRefused as error:
            faults.append(str(error))
    if faults:
        raise (TopicRefused if known else Warned)("\n".join(faults))
    return "topics may be written, and created if they are missing"


async def _require_right(kafka: KafkaContext, topic: str, *, exists: bool) -> None:
    publisher = kafka.settings.publisher
    if not exists:
        factor, partitions = publisher.replication_factor, publisher.partitions or 1
        await create_topic(kafka.admin, topic, partitions, publisher.topic_settings, factor, validate_only=True)
    if not await may_write(kafka.admin, topic):  # also a topic that exists, and that the account does not see
        raise WriteDenied(f"Kafka denies the account WRITE on topic {topic}; grant it")


async def _transactions(kafka: KafkaContext) -> str:
    """Open a transactional producer, as the publisher does, under an id of its own."""
    publisher = kafka.settings.publisher
    if publisher.delivery == "at_least_once":
        return "not used: publisher.delivery is at_least_once"
    identity = names.check_id(kafka.settings.name)
    async with kafka_client.producer(kafka.settings.kafka, identity, publisher.transaction_timeout):
        return f"possible, and may take {publisher.transaction_timeout:g} s"


async def _record_size(kafka: KafkaContext) -> str:
    oversize, row_limit = kafka.settings.publisher.oversize, kafka.settings.reader.row_limit
    if not (broker := await broker_settings(kafka.admin)):
        return f"not known: the account may not read the broker's settings; larger ones: publisher.oversize={oversize}"
    limit = int(broker.get("message.max.bytes", DEFAULT_MAX_MESSAGE_BYTES))
    if oversize == "stop" and limit < row_limit:
        raise Warned(
            f"Kafka: message.max.bytes is {limit:,}, and reader.row_limit is {row_limit:,}: with "
            "publisher.oversize=stop a larger record stops the publisher: raise max.message.bytes of the topics, or "
            "set publisher.oversize"
        )
    return f"up to {limit:,} bytes in a new topic; larger ones: publisher.oversize={oversize}"


HISTORY = Check("schema history", _history)
PROGRESS = Check("progress", _progress)
#: what the publisher needs
PUBLISHER_CHECKS = (
    Check("topics of the state", _state_topics),
    PROGRESS,
    HISTORY,
    Check("tables in doubt", _states),
    Check("names of topics", _topics),
    Check("rights on topics", _rights),
    Check("transactions", _transactions),
    Check("size of records", _record_size),
)
