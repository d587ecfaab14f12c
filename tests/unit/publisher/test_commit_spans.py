"""Spans of entries and of the commits that have them."""

import asyncio
import time
from typing import Any, NamedTuple

import pytest

from databus_core.errors import KafkaUnavailable
from databus_core.events import End, TableDefinition
from databus_core.progress import Progress
from databus_core.spans import Spans, Trace
from databus_publisher.tracing import TracedEnd
from unit.publisher.publishing import CHUNK, COMMIT, ROW, START, TABLE, add, begin


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
