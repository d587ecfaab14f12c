"""Replay a dead letter: write its record to its topic and partition, or to topic `--to`; delete the letter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import MessageSizeTooLargeError

from databus_core import kafka_client, names
from databus_core.dead_letters import DeadLetter
from databus_core.errors import RAISE_LIMIT, DatabusError, RecordTooLarge
from databus_core.kafka_dead_letters import Letter
from databus_core.kafka_history import read_history
from databus_core.kafka_topics import max_batch_bytes, partition_counts
from databus_core.settings import Settings
from databus_core.settings.rules import database_rules
from databus_core.settings.topic_claims import TopicClaims, known_claims


class Replay:
    """Replays dead letters; with `publisher.delivery: exactly_once`, each in a Kafka transaction of its own."""

    def __init__(
        self,
        settings: Settings,
        producer: AIOKafkaProducer,
        admin: AIOKafkaAdminClient,
        claims: TopicClaims,
        to: str | None,
    ) -> None:
        self._settings = settings
        self._letters = names.dead_letter_topic(settings.name)
        self._transactional = settings.publisher.delivery == "exactly_once"
        self._producer = producer
        self._admin = admin
        self._claims = claims
        self._to = to
        #: topic → number of its partitions
        self._partitions: dict[str, int] = {}
        #: topic → limit in bytes for a batch
        self._limits: dict[str, int] = {}

    async def send(self, letter: Letter, value: bytes) -> str:
        """Replay a letter. Return why it cannot be replayed, or "" if it was.

        Raises RecordTooLarge if the broker refuses the record as too large although `max_batch_bytes` allows it.
        """
        about = letter.about
        if about.reason == "parked":
            return (
                "the dead letter stands for the table's changes since then, which no replay can bring back; load the "
                f"table again: databus backfill start {about.table_name} --clean"
            )
        if not value and not about.is_tombstone:
            limit_option = f"--row-limit {about.size // 2**20 + 1}MiB"
            return (
                "the record's value was not kept; the binlog has it: "
                f"databus binlog {about.file} {limit_option} --tables {about.table_name} "
                f"--format {about.format}"
            )
        topic, refusal = self._destination(about)
        if refusal:
            return refusal
        partitions = await self._count(topic)
        partition = about.partition % max(partitions, 1) if self._to else about.partition
        if partition >= partitions:
            return f"topic {topic} has no partition {partition}: create it, or choose another topic with --to"
        batch = self._producer.create_batch()
        content = None if about.is_tombstone else value
        batch.append(timestamp=None, key=about.key, value=content, headers=[*about.record_headers])
        limit = await self._limit(topic)
        if batch.size() > limit:
            return f"the record needs {batch.size()} bytes, topic {topic} accepts {limit} bytes: {RAISE_LIMIT}"
        if self._transactional:
            async with self._producer.transaction():
                await self._write(letter, batch, topic, partition)
        else:
            await self._write(letter, batch, topic, partition)
        return ""

    def _destination(self, about: DeadLetter) -> tuple[str, str]:
        """Return a record's topic, and why it cannot be used. What had no topic may have one by now."""
        if about.reason != "no_topic" or self._to:
            return self._to or about.topic, ""
        if about.table:
            for found in self._claims.claim(about.schema, about.table):
                if found.rule.output == about.output:
                    return found.topic, found.refusal
        else:
            for rule in database_rules(self._settings.publisher.rules, about.schema):
                if rule.output == about.output:
                    topic = rule.database_topic_of(self._settings.name, about.schema)
                    return topic, self._claims.claim_for_database(topic)
        return about.topic, ""

    async def _write(self, letter: Letter, batch: Any, topic: str, partition: int) -> None:
        """Write the record and the letter's tombstone. Await both: aiokafka commits even if a delivery has failed."""
        try:
            await (await self._producer.send_batch(batch, topic, partition=partition))
        except MessageSizeTooLargeError as error:
            raise RecordTooLarge(topic, batch.size(), 1) from error
        await self._producer.send_and_wait(self._letters, None, key=letter.id, partition=0)

    async def _count(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions = await partition_counts(self._admin)
        return self._partitions.setdefault(topic, 0)

    async def _limit(self, topic: str) -> int:
        if topic not in self._limits:
            self._limits[topic] = await max_batch_bytes(self._admin, topic)
        return self._limits[topic]


@asynccontextmanager
async def open_replay(settings: Settings, to: str | None) -> AsyncIterator[Replay]:
    """Connect as a producer. With `publisher.delivery: exactly_once`, it fences a replay that is still running.

    to: the topic to write to instead of the records' own topics.
    """
    claims = known_claims(settings, (await read_history(settings)).by_claim(), folded=True)
    async with kafka_client.admin(settings.kafka) as admin:
        if to and to not in await partition_counts(admin):
            raise DatabusError(f"--to: there is no topic {to}; create it first")
        identity = names.replay_id(settings.name) if settings.publisher.delivery == "exactly_once" else None
        async with kafka_client.producer(settings.kafka, identity) as producer:
            yield Replay(settings, producer, admin, claims, to)
