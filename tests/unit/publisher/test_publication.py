"""What a publisher commits after a failure, after `End`, and beside a commit that is under way, and the spans of it.

The producer is a stand-in that can refuse records.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import msgspec
import pytest

from common.waiting import eventually
from databus_binlog import Position
from databus_core.dead_letters import DeadLetter, read_headers
from databus_core.errors import FatalError, GenerationLost, KafkaUnavailable
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    End,
    Event,
    Heartbeat,
    OversizedRow,
    QueryEvent,
    RowsEvent,
    Skipped,
    SnapshotEvent,
    SnapshotTruncate,
    Start,
    Table,
    TableDefinition,
    encode_events,
)
from databus_core.names import SEQUENCE_HEADER
from databus_core.pipe import Entry
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.publisher import Compression
from databus_core.settings.topic_claims import known_claims
from databus_core.spans import Spans, Trace
from databus_messages.formats.base import KeyValueRecords, Record
from databus_messages.routing.partitions import Partition
from databus_publisher import service
from databus_publisher.batches import Limit
from databus_publisher.publication import Publication
from databus_publisher.service import _next_entries, _publish_entries
from databus_publisher.tracing import TracedEnd, TracedPublication
from databus_wire.kafka_records import sequence_text

TABLE = Table(schema="shop", name="items", columns=(Column(name="id", type="int", raw_type="int"),), primary_key=(0,))
START = [Start(Position("", "binlog.1", 4), "server", "mysql", 1, in_order=True), TableDefinition(TABLE)]
ROW = RowsEvent(TABLE.fingerprint, Action.INSERT, 0, 10, 20, msgspec.Raw(msgspec.msgpack.encode([[b"1"]])))
COMMIT = Commit("", "binlog.1", 30, 7)
CHUNK = SnapshotEvent(TABLE.fingerprint, 0, ROW.rows, 1)


class Producer:
    """A stand-in for databus_publisher.producer.Producer."""

    def __init__(self) -> None:
        #: whether records fit
        self.accepts = True
        #: raised by `send` and by `finish_commit`
        self.failure: Exception | None = None
        self.commit_failure: Exception | None = None
        #: commits that have ended, and the one that was started
        self.commits: list[Progress] = []
        self.started: Progress | None = None
        self.committing: asyncio.Future[None] | None = None
        #: records for the tables' topic
        self.records: list[Record] = []
        self.letters: list[tuple[DeadLetter, bytes | None]] = []
        self.letter_sequences: list[bytes] = []

    def set_limit(self, topic: str, limit: Limit, compression: Compression = "none") -> None: ...

    def limit(self, topic: str) -> Limit:
        return Limit(10)

    def open_batch(self, partition: Partition) -> None:
        """Leave all transactions to the Python path."""

    def fill(self, partition: Partition, records: KeyValueRecords, first: int = 0) -> int:
        if self.failure or not self.accepts or partition.topic != "t":
            return 0
        self.records += [*records][first:]
        return len(records) - first

    async def send(self, partition: Partition, record: Record) -> bool:
        if self.failure:
            raise self.failure
        if partition.topic == "t":
            self.records.append(record)
        if partition.topic == "letters":
            self.letters.append((read_headers(record.headers), record.value))
            self.letter_sequences.append(dict(record.headers)[SEQUENCE_HEADER])
        return self.accepts

    async def limit_memory(self) -> None: ...

    async def partitions(self, topic: str) -> int:
        return 1

    async def start_commit(self, progress: Progress) -> None:
        self.started, self.committing = progress, asyncio.get_running_loop().create_future()

    async def abort(self) -> None: ...

    async def finish_commit(self) -> None:
        if self.started and self.commit_failure:
            raise self.commit_failure
        if self.started:
            self.commits.append(self.started)
            self.started = self.committing = None


class Topics:
    """A stand-in for databus_publisher.topics.Topics."""

    async def ensure(self, topic: str, partitions: int | None = None) -> None: ...

    async def ensure_dead_letters(self) -> str:
        return "letters"

    async def limit(self, topic: str) -> Limit:
        return Limit(10)

    async def raised_limit(self, topic: str) -> None: ...


@pytest.fixture
def publish() -> Callable[..., Any]:
    def make(
        message_format: str, oversize: str = "stop", pipe: TracedEnd | None = None, **options: object
    ) -> tuple[Publication, Producer]:
        routes = [{"match": ["*.*"], "format": message_format, "topic": "t", "options": options}]
        settings = Settings.model_validate({"name": "shop", "publisher": {"routes": routes, "oversize": oversize}})
        producer: Any = Producer()
        topics: Any = Topics()
        arguments = settings, producer, topics, Progress(), known_claims(settings, []), ()
        return TracedPublication(pipe, *arguments) if pipe else Publication(*arguments), producer

    return make


def begin(transaction: int) -> Begin:
    return Begin(transaction, "", "binlog.1", 1, 1, 1)


async def add(publication: Publication, *events: Event) -> None:
    await publication.add(encode_events(events))


@pytest.mark.parametrize("message_format", ["databus", "maxwell-json"])
async def test_a_transaction_that_was_not_sent_completely_cannot_be_committed(publish, message_format):
    """Maxwell's messages are sent only when the transaction ends, so they may fail as late as at its Commit."""
    publication, producer = publish(message_format)
    await add(publication, *START, begin(1), ROW, COMMIT)
    assert publication.committable
    producer.accepts = False
    with pytest.raises(FatalError, match="accepts batches of 10 bytes"):
        await add(publication, begin(2), ROW, COMMIT)
    assert not publication.committable


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (ROW, r"accepts batches of 10 bytes: raise its max\.message\.bytes, and its segment\.bytes if .*, or set"),
        (
            OversizedRow(TABLE.fingerprint, Action.INSERT, 0, 10, 20, 9),
            r"reader\.row_limit: raise reader\.row_limit, or set",
        ),
        (
            msgspec.structs.replace(ROW, rows=msgspec.Raw(msgspec.msgpack.encode([[b"\xff"]]))),
            r"\(UnicodeDecodeError\): set",
        ),
    ],
)
async def test_policy_stop_advises_what_helps(publish, event, error):
    publication, producer = publish("tdsql")
    await add(publication, *START, begin(1))
    producer.accepts = False
    with pytest.raises(FatalError, match=rf"{error} publisher\.oversize to another policy$"):
        await add(publication, event)


async def test_rows_of_a_backfill_and_the_truncation_before_them_are_committed_at_once(publish):
    publication, producer = publish("databus")
    backfill = SnapshotTruncate(TABLE.fingerprint), CHUNK
    await add(publication, *START, begin(1), *backfill, COMMIT, begin(2), ROW, COMMIT)
    actions = [msgspec.json.decode(record.value)["Action"] for record in producer.records]
    assert actions == ["truncate", "insert", "insert"]
    assert producer.started is not None
    assert producer.started.transaction == 1
    assert publication.committable


async def test_the_progress_of_a_commit_counts_when_the_commit_has_ended(publish):
    publication, _ = publish("databus")
    await add(publication, *START, begin(1), CHUNK, COMMIT)
    await add(publication, begin(2), ROW, COMMIT)
    assert publication.committed.transaction == 0
    await publication.finish_commit()
    assert publication.committed.transaction == 1
    await publication.start_commit()
    assert (await publication.abandon()).transaction == 2


async def test_the_progress_counts_when_records_go_to_topics_for_the_first_time(publish):
    """Consumers need to look for new topics only when the count changes; a letter's topic is one, too."""
    publication, producer = publish("databus", "deadletter")
    unread = OversizedRow(TABLE.fingerprint, Action.INSERT, 0, 10, 20, 9)
    await add(publication, *START)
    for number, event in enumerate((ROW, ROW, unread, unread), 1):
        await add(publication, begin(number), event, COMMIT)
        await publication.commit()
    counts = {commit.transaction: commit.topics_opened for commit in producer.commits}
    assert counts == {0: None, 1: 1, 2: 1, 3: 2, 4: 2}


async def test_the_first_position_cannot_be_committed_without_the_head_of_the_schema_history(publish):
    publication, producer = publish("databus")
    producer.failure = KafkaUnavailable("away")
    with pytest.raises(KafkaUnavailable):
        await add(publication, *START)
    assert not publication.committable


async def test_a_heartbeat_that_was_not_sent_does_not_move_the_progress(publish):
    publication, producer = publish("debezium-json", heartbeat_interval_ms=1)
    await add(publication, *START)
    producer.accepts = False
    with pytest.raises(FatalError):
        await add(publication, Heartbeat("", "binlog.1", 40, 5_000))
    assert not publication.committable


async def test_the_end_event_commits_everything_before_it(publish):
    """The reader exits when the entry with `End` is trimmed, so everything must be committed before that."""
    publication, producer = publish("databus")
    await add(publication, *START, begin(1), ROW, COMMIT, End())
    assert (publication.ended, publication.committable) == (True, False)
    assert producer.commits[-1].transaction == 1


async def test_an_end_event_inside_a_transaction_means_that_the_generation_is_lost(publish):
    publication, _ = publish("databus")
    with pytest.raises(GenerationLost, match="inside a transaction"):
        await add(publication, *START, begin(1), ROW, End())
    assert not publication.ended


DDL = QueryEvent(TABLE.fingerprint, Action.ALTER, b"ALTER TABLE items COMMENT 'c'", 20, 25, TABLE.fingerprint)


@pytest.mark.parametrize(("message_format", "ddl"), [("databus", 1), ("maxwell-json", 0), ("canal-protobuf", 1)])
async def test_all_rows_of_a_skipped_transaction_are_dead_letters_and_nothing_else_is(publish, message_format, ddl):
    """Also with `publisher.oversize: stop`. DDL is certain, and frames would count the rows that are missing."""
    publication, producer = publish(message_format)
    unread = OversizedRow(TABLE.fingerprint, Action.INSERT, 1, 10, 20, 1 << 20)
    await add(publication, *START, begin(1), ROW, COMMIT)
    published = len(producer.records)
    producer.records.clear()
    await add(publication, begin(2), Skipped(), ROW, unread, COMMIT, begin(3), Skipped(), DDL, COMMIT)
    assert len(producer.records) == ddl
    letters = {letter.reason: (letter, value) for letter, value in producer.letters}
    assert letters.keys() == {"skipped", "unread"}
    letter, value = letters["skipped"]
    assert (letter.topic, letter.transaction, letter.table_name, letter.size) == ("t", 2, "shop.items", len(value))
    assert value
    assert producer.letter_sequences == [sequence_text(2, letter.row) for letter, _ in producer.letters]
    assert letter.error == "insert of shop.items at binlog.1:10 is in a transaction that is skipped"

    producer.records.clear()
    await add(publication, begin(4), ROW, COMMIT)
    assert (len(producer.records), len(producer.letters)) == (published, 2)


async def beside_a_commit(publish: Any) -> tuple[Any, Any]:
    """Return a publication that has sent a transaction while the commit of a chunk is under way."""
    publication, producer = publish("databus")
    await add(publication, *START, begin(1), CHUNK, COMMIT, begin(2), ROW, COMMIT)
    return publication, producer


async def test_what_was_published_beside_a_commit_is_committed_when_that_has_ended(publish):
    publication, producer = await beside_a_commit(publish)
    nothing_arrives: asyncio.Task[Any] = asyncio.create_task(asyncio.Event().wait())
    waiting = asyncio.create_task(_next_entries(publication, nothing_arrives))
    await asyncio.wait({waiting}, timeout=0.02)
    assert publication.committed.transaction == 0
    producer.committing.set_result(None)

    async def both_are_committed() -> bool:
        return publication.committed.transaction == 2

    await eventually(both_are_committed)
    waiting.cancel()
    nothing_arrives.cancel()


async def test_a_commit_that_has_ended_counts_though_further_entries_have_arrived(publish):
    publication, producer = await beside_a_commit(publish)
    arrived = asyncio.create_task(asyncio.sleep(0, ([], True)))
    await arrived
    producer.committing.set_result(None)
    assert await _next_entries(publication, arrived) == ([], True)
    assert (publication.committed.transaction, publication.committable) == (1, True)


async def test_what_was_published_is_committed_if_the_reader_ends_the_generation_meanwhile(publish):
    """The reader may have ended it because everything it has sent was taken; it does not send it again."""
    publication, _ = await beside_a_commit(publish)

    async def end() -> NoReturn:
        raise GenerationLost("the reader has ended the generation")

    with pytest.raises(GenerationLost):
        await _next_entries(publication, asyncio.create_task(end()))
    assert publication.committed.transaction == 2


class Pipe:
    """A stand-in for databus_core.pipe.PublisherEnd. A trim waits for `answer`."""

    def __init__(self) -> None:
        self.trims: list[int] = []
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def trim(self, entries: Sequence[Entry] = ()) -> None:
        self.trims.append(len(entries))
        self.asked.set()
        await self.answer


async def started(publish: Any) -> tuple[Publication, Producer]:
    """Return a publication that has committed its first position."""
    publication, producer = publish("databus")
    await add(publication, *START)
    producer.commits.clear()
    return publication, producer


def entry_of(*events: Event) -> Entry:
    return Entry(b"token", b"claim", 0, encode_events(list(events)))


async def test_the_last_entries_are_trimmed_while_they_are_committed(publish):
    publication, producer = await started(publish)
    pipe: Any = Pipe()
    publishing = asyncio.create_task(_publish_entries(pipe, publication, [entry_of(begin(1), ROW, COMMIT)], True))
    await pipe.asked.wait()
    assert producer.committing
    assert producer.commits == []
    pipe.answer.set_result(None)
    await publishing
    assert [progress.transaction for progress in producer.commits] == [1]
    assert pipe.trims == [1]


async def test_after_a_slow_commit_the_pipe_learns_the_size_of_entries_again(publish, monkeypatch):
    monkeypatch.setattr(service, "_TRIMMED_SECONDS", -1)
    publication, _ = await started(publish)
    pipe: Any = Pipe()
    pipe.answer.set_result(None)
    await _publish_entries(pipe, publication, [entry_of(begin(1), ROW, COMMIT)], True)
    assert pipe.trims == [1, 0]


async def test_a_commit_is_finished_though_the_generation_ends_meanwhile(publish):
    publication, producer = await started(publish)
    pipe: Any = Pipe()
    pipe.answer.set_exception(GenerationLost("the generation is gone"))
    with pytest.raises(GenerationLost):
        await _publish_entries(pipe, publication, [entry_of(begin(1), ROW, COMMIT)], True)
    assert [progress.transaction for progress in producer.commits] == [1]
    assert publication.committed.transaction == 1


@pytest.mark.parametrize(("events", "drained"), [((begin(1), ROW, COMMIT), False), ((begin(1), ROW), True)])
async def test_nothing_is_committed_while_more_entries_wait_or_a_transaction_is_open(publish, events, drained):
    publication, producer = await started(publish)
    pipe: Any = Pipe()
    pipe.answer.set_result(None)
    await _publish_entries(pipe, publication, [entry_of(*events)], drained)
    assert (producer.commits, pipe.trims) == ([], [1])


class Recorded(NamedTuple):
    """A span as it was added, with the generation and the number of its entry."""

    generation: bytes
    entry: int
    stage: str
    begun_ns: int
    ended_ns: int
    #: ordinal of the last transaction of a commit
    last: int | None
    #: type of the error
    error: str | None


class RecordedSpans(Spans):
    """Keeps the spans that are added; entries of the generation `unsampled` have none."""

    unsampled = b""

    def __init__(self) -> None:
        self.added: list[Recorded] = []

    def trace(self, generation: bytes, claim: bytes, number: int) -> Trace | None:
        return None if generation == self.unsampled else Trace(0, {}, generation.hex(), number)

    def add(self, trace, stage, begun_ns, ended_ns, attributes, error=None) -> None:
        last = attributes.get("databus.transaction.last")
        name = type(error).__name__ if error else None
        self.added.append(Recorded(bytes.fromhex(trace.generation), trace.entry, stage, begun_ns, ended_ns, last, name))

    @property
    def steps(self) -> list[tuple[int, str]]:
        return [(span.entry, span.stage) for span in self.added]


class Redis:
    """A stand-in for a Redis that has entries of the open generation."""

    def __init__(self) -> None:
        self.generation = b""

    async def fcall(self, name: str, keys: int, *args: Any) -> int:
        if name.endswith("_open"):
            self.generation = args[2]
        return 0

    async def xread(self, streams: dict[str, str], count: int, block: int | None) -> Any:
        fields = {b"token": self.generation, b"claim": b"claim", b"payload": b""}
        begin = int(next(iter(streams.values())).partition("-")[0]) + 1
        return {b"stream": [[(b"%d-0" % number, fields) for number in range(begin, begin + count)]]}


@pytest.fixture
def spans() -> RecordedSpans:
    return RecordedSpans()


@pytest.fixture
async def traced(spans: RecordedSpans) -> TracedEnd:
    """A pipe of which four entries were taken."""
    redis: Any = Redis()
    pipe = TracedEnd(redis, "shop", spans)
    await pipe.open(Progress())
    await pipe.take(count=4, block_ms=None)
    return pipe


async def test_each_entry_has_a_span_of_the_commit_that_has_its_end(publish, traced, spans):
    publication, _ = publish("databus", pipe=traced)
    await add(publication, *START, begin(1), CHUNK, COMMIT, begin(2), ROW)  # a commit begins inside of it
    await publication.finish_commit()
    assert spans.steps == [(0, "publish")]
    await add(publication, COMMIT, begin(3), CHUNK, COMMIT)  # a commit begins at its end
    await publication.finish_commit()
    assert spans.steps[1:] == [(1, "publish"), (0, "commit"), (1, "commit")]
    await add(publication, begin(4), ROW, COMMIT, End())
    assert spans.steps[4:] == [(2, "publish"), (2, "commit")]
    assert [span.last for span in spans.added if span.stage == "commit"] == [3, 3, 4]
    assert [*traced.arrived] == [3]


async def test_a_span_of_a_commit_ends_when_kafka_has_answered_and_not_when_the_publisher_looks(publish, traced, spans):
    publication, producer = publish("databus", pipe=traced)
    before = time.time_ns()
    await add(publication, *START, begin(1), ROW, COMMIT)
    await publication.start_commit()
    begun = time.time_ns()
    producer.committing.set_result(None)
    await asyncio.sleep(0)  # the callback runs
    answered = time.time_ns()
    await publication.finish_commit()
    sent, committed = spans.added
    assert sent.begun_ns <= before < sent.ended_ns <= committed.begun_ns < begun <= committed.ended_ns <= answered
    await add(publication, TableDefinition(TABLE))  # has nothing to commit
    assert spans.steps[2:] == [(1, "publish")]


async def test_an_entry_that_was_taken_before_its_generation_was_lost_has_no_span_in_the_next_one(
    publish, traced, spans
):
    publication, _ = publish("databus", pipe=traced)
    await add(publication, *START, begin(1), ROW)
    lost = bytes.fromhex(traced.generation)
    progress = await publication.abandon()
    publication, _ = publish("databus", pipe=traced)
    await traced.open(progress)
    spans.unsampled = bytes.fromhex(traced.generation)
    await traced.take(count=2, block_ms=None)
    for transaction, entry in enumerate(([*START], []), 1):
        await add(publication, *entry, begin(transaction), ROW, COMMIT)
    await publication.commit()
    assert [span[:3] for span in spans.added] == [(lost, 0, "publish")]


async def test_a_step_that_fails_has_the_type_of_its_error_in_the_trace_of_each_of_its_entries(publish, traced, spans):
    publication, producer = publish("databus", pipe=traced)
    await add(publication, *START, begin(1), ROW, COMMIT)
    await publication.commit()
    await add(publication, begin(2), ROW, COMMIT)
    await add(publication, begin(3), ROW, COMMIT)
    producer.failure = producer.commit_failure = KafkaUnavailable("away")
    with pytest.raises(KafkaUnavailable):
        await publication.commit()
    with pytest.raises(KafkaUnavailable):
        await add(publication, begin(4), ROW)
    assert [(span.entry, span.stage, span.last, span.error) for span in spans.added[4:]] == [
        (1, "commit", 3, "KafkaUnavailable"),
        (2, "commit", 3, "KafkaUnavailable"),
        (3, "publish", None, "KafkaUnavailable"),
    ]
