"""What the service publishes, commits and trims beside a commit that is under way."""

import asyncio
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest

from common.waiting import eventually
from databus_core.errors import GenerationLost
from databus_core.events import Event, encode_events
from databus_core.pipe import Entry
from databus_publisher import service
from databus_publisher.publication import Publication
from databus_publisher.service import _next_entries, _publish_entries
from unit.publisher.publishing import CHUNK, COMMIT, ROW, START, Producer, add, begin


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
