"""Publishes streams of events to a stand-in for Kafka, under the real batches. Returns all that Kafka would have."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from aiokafka.record.default_records import DefaultRecordBatch

from common.event_writer import Stream
from databus_core.errors import TopicNameRefused, TopicRefused
from databus_core.events import encode_events
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.topic_claims import known_claims
from databus_messages.formats.canal_json import CanalJson
from databus_publisher.batches import Batches, Limit
from databus_publisher.publication import Publication
from databus_publisher.record_batch import RecordBatch

NOW_NS = 1_790_000_000_123_456_789


@dataclass(frozen=True)
class Broker:
    """What Kafka answers."""

    partitions: int = 1
    #: of the topics of changes
    limit: Limit = field(default_factory=lambda: Limit(2**20))
    #: what the topics have in their names that Kafka refuses to create, and whose names it refuses
    refused: str = "refused"
    unnamed: str = "unnamed"


@dataclass
class Outcome:
    """What was published: all that Kafka would have, and the errors."""

    #: topic and partition → its records, with their times
    records: dict[tuple[str, int], list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    #: what was committed, and the number of records by topic that metrics count for it
    commits: list[tuple[Progress, Counter[str]]] = field(default_factory=list)
    error: tuple[type[Exception], str] | None = None
    #: number of the entries that are published, whether something can be committed and whether a transaction is open
    end: tuple[int, bool, bool] = 0, False, False


class _Kafka:
    """Keeps the batches. Like aiokafka, it closes none when it is handed over."""

    client = SimpleNamespace(add_topic=lambda topic: None)

    def __init__(self) -> None:
        self.batches: list[tuple[str, int, RecordBatch]] = []

    async def send_batch(self, batch: RecordBatch, topic: str, partition: int) -> "asyncio.Future[None]":
        self.batches.append((topic, partition, batch))
        delivered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delivered.set_result(None)
        return delivered


class _Producer(Batches):
    committing = None

    def __init__(self, kafka: Any, broker: Broker, outcome: Outcome) -> None:
        super().__init__(kafka, transactional=True)
        self._broker, self._outcome = broker, outcome

    async def partitions(self, topic: str) -> int:
        return self._broker.partitions

    async def start_commit(self, progress: Progress) -> None:
        await self.flush()
        self._outcome.commits.append((progress, self.take_records()))

    async def finish_commit(self) -> None: ...


class _Topics:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def ensure(self, topic: str, partitions: int | None = None) -> None:
        if self._broker.refused in topic:
            raise TopicRefused(f"topic {topic} is refused")
        if self._broker.unnamed in topic:
            raise TopicNameRefused(f"the name {topic} is refused")

    async def ensure_dead_letters(self) -> str:
        return "letters"

    async def limit(self, topic: str) -> Limit:
        return Limit(2**25) if topic == "letters" else self._broker.limit

    async def raised_limit(self, topic: str) -> None: ...


def outcome_of(stream: Stream, settings: Mapping[str, Any], broker: Broker, *, pure: bool) -> Outcome:
    """Publish a stream with these settings. `pure`: only by the Python path. The clock stands still meanwhile."""
    outcome = Outcome()
    with _standing_clock(), patch.dict("os.environ", {"DATABUS_PURE": "1" if pure else ""}):
        asyncio.run(_publish(stream, Settings.model_validate({"name": "shop", **settings}), broker, outcome))
    return outcome


async def _publish(stream: Stream, settings: Settings, broker: Broker, outcome: Outcome) -> None:
    kafka, topics = _Kafka(), _Topics(broker)
    producer: Any = _Producer(kafka, broker, outcome)
    claims = known_claims(settings, [(table.schema, table.name) for table in stream.tables])
    publication = Publication(settings, producer, topics, Progress(), claims, ())  # type: ignore[arg-type]
    try:
        for entry, commits in zip(stream.entries, stream.commits, strict=True):
            await publication.add(encode_events(entry))
            if commits:
                await publication.commit()
    except Exception as error:  # noqa: BLE001 - the error is part of the outcome
        outcome.error = type(error), str(error)
    outcome.end = publication.published, publication.committable, publication.in_transaction
    await publication.commit()  # as at a shutdown, also after an error
    await producer.flush()
    for topic, partition, batch in kafka.batches:
        outcome.records[topic, partition] += [
            (record.key, record.value, tuple(record.headers), record.timestamp)
            for record in DefaultRecordBatch(bytes(batch._build()))
        ]


@contextmanager
def _standing_clock() -> Iterator[None]:
    def clock() -> float:
        return NOW_NS / 1e9

    with (
        patch("time.time_ns", return_value=NOW_NS),
        patch("databus_publisher.batches.time_ns", return_value=NOW_NS),
        patch.object(CanalJson.__init__, "__defaults__", (clock,)),
    ):
        yield
