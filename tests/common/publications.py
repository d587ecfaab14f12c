"""Publishes streams of events to a stand-in for Kafka, under the real producer. Returns all that Kafka would have."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from aiokafka.record.default_records import DefaultRecordBatch

from common.event_writer import Stream
from databus_core import names
from databus_core.errors import TopicNameRefused, TopicRefused
from databus_core.events import encode_events
from databus_core.progress import Progress, decode_progress
from databus_core.settings import Settings
from databus_core.settings.topic_claims import known_claims
from databus_messages.formats.canal_json import CanalJson
from databus_publisher.batches import Limit
from databus_publisher.producer import AtLeastOnce, ExactlyOnce
from databus_publisher.publication import Publication
from databus_publisher.record_batch import RecordBatch

#: turns of the event loop for a commit
_COMMIT_TURNS = 20
#: topics of heartbeats, whose sequences are those of the next transaction
_HEARTBEATS = "__debezium-heartbeat"
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
    #: what was committed, from the topic of the progress
    commits: list[Progress] = field(default_factory=list)
    #: number of records by topic that metrics count for each commit
    counted: list[Counter[str]] = field(default_factory=list)
    error: tuple[type[Exception], str] | None = None
    #: number of the entries that are published, whether something can be committed and whether a transaction is open
    end: tuple[int, bool, bool] = 0, False, False


class _Kafka:
    """Keeps the batches. Like aiokafka, it closes none when it is handed over. A commit takes a while."""

    client = SimpleNamespace(add_topic=lambda topic: None)

    def __init__(self, partitions: int) -> None:
        self.batches: list[tuple[str, int, RecordBatch]] = []
        #: the first batch of each Kafka transaction
        self.begun: list[int] = []
        self._partitions = partitions

    async def partitions_for(self, topic: str) -> range:
        return range(self._partitions)

    async def send_batch(self, batch: RecordBatch, topic: str, partition: int) -> "asyncio.Future[None]":
        assert batch.record_count()
        self.batches.append((topic, partition, batch))
        delivered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delivered.set_result(None)
        return delivered

    async def begin_transaction(self) -> None:
        self.begun.append(len(self.batches))

    async def commit_transaction(self) -> None:
        for _ in range(_COMMIT_TURNS):
            await asyncio.sleep(0)


_PRODUCERS = {"exactly_once": ExactlyOnce, "at_least_once": AtLeastOnce}


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
    kafka, topics = _Kafka(broker.partitions), _Topics(broker)
    producer: Any = _PRODUCERS[settings.publisher.delivery](kafka, settings.name)  # type: ignore[arg-type]
    producer.take_records = partial(_noting, producer.take_records, outcome.counted)
    claims = known_claims(settings, [(table.schema, table.name) for table in stream.tables])
    publication = Publication(settings, producer, topics, Progress(), claims, ())  # type: ignore[arg-type]
    try:
        for entry, commits in zip(stream.entries, stream.commits, strict=True):
            await publication.add(encode_events(entry))
            if commits and publication.committable:  # it ends while the next entries are published
                await publication.start_commit()
    except Exception as error:  # noqa: BLE001 - the error is part of the outcome
        outcome.error = type(error), str(error)
    await publication.finish_commit()
    outcome.end = publication.published, publication.committable, publication.in_transaction
    await publication.commit()  # as at a shutdown, also after an error
    await producer.flush()
    for topic, partition, batch in kafka.batches:
        outcome.records[topic, partition] += [
            (record.key, record.value, tuple(record.headers), record.timestamp)
            for record in DefaultRecordBatch(bytes(batch._build()))
        ]
    outcome.commits = [
        decode_progress(value) for _, value, *_ in outcome.records[names.progress_topic(settings.name), 0]
    ]
    _require_whole_transactions(kafka, names.progress_topic(settings.name))


def _require_whole_transactions(kafka: _Kafka, progress_topic: str) -> None:
    """Require each Kafka transaction to have all records up to its progress, and none after it.

    With `at_least_once` there are no Kafka transactions.
    """
    before = 0
    for first, end in pairwise([*kafka.begun, len(kafka.batches)]):
        sent: list[int] = []
        reached: int | None = None
        for topic, _, batch in kafka.batches[first:end]:
            for record in DefaultRecordBatch(bytes(batch._build())):
                if topic == progress_topic:
                    reached = decode_progress(record.value).transaction
                if not topic.startswith(_HEARTBEATS):
                    sent += [int(text[:16]) for name, text in record.headers if name == names.SEQUENCE_HEADER]
        if reached is None:  # it was not committed, after an error
            continue
        assert all(before < transaction <= reached for transaction in sent), (before, sent, reached)
        before = reached


def _noting(take: Callable[[], Counter[str]], noted: list[Counter[str]]) -> Counter[str]:
    noted.append(taken := take())
    return taken


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
