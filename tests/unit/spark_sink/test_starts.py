"""Where a batch begins, and which topics are not those that the change log has read."""

from dataclasses import replace
from typing import Any

import pytest
from aiokafka import TopicPartition

from databus_spark.changelog import LogState
from databus_spark_sink.stream import starts
from databus_spark_sink.stream.starts import Loss, StartFinder, Starts
from unit.spark_sink.fake_consumer import FakeConsumer, Records

ITEMS, OTHER = TopicPartition("shop.items", 0), TopicPartition("shop.items", 1)
#: of transactions up to 20, with markers
OLD = [5, None, 9, None, 20, None]
AGAIN = {"shop.items": Loss("topic shop.items was deleted and created again", was_deleted=True)}


async def find(
    partitions: dict[TopicPartition, Records], state: LogState, earliest: dict[TopicPartition, int] | None = None
) -> Starts:
    consumer: Any = FakeConsumer(partitions, earliest or {})
    ends = {each: len(records) for each, records in partitions.items()}
    return await StartFinder(consumer).find(state, ends, r"shop\..*")


def at(offset: int, transaction: int = 20, **more: Any) -> LogState:
    return LogState(transaction, {"shop.items": {0: offset}}, **more)


@pytest.mark.parametrize(
    ("records", "earliest", "what"),
    [
        ([*OLD, 21], 0, "new records follow"),
        (OLD, 0, "there is nothing new"),
        ([*OLD, 21], 6, "retention has deleted what was read"),
        ([None] * 6, 0, "all that was read was aborted, or compacted"),
        ([3, *[None] * 5, 21], 0, "compaction has left an early record"),
        ([5, 20, None, 9, 7, None, 21], 0, "dead letters were replayed"),
    ],
)
async def test_a_topic_continues_where_the_change_log_has_come(records: Records, earliest: int, what: str) -> None:
    assert await find({ITEMS: records}, at(6), {ITEMS: earliest}) == Starts({ITEMS: 6}, {}, []), what


async def test_a_topic_that_was_created_again_is_read_from_its_first_record_on() -> None:
    assert await find({ITEMS: [21]}, at(6)) == Starts({ITEMS: 0}, AGAIN, []), "it has fewer records"
    more: Records = [21, None, 22, None, 3, None, 23]
    assert await find({ITEMS: more}, at(6)) == Starts({ITEMS: 0}, AGAIN, []), "it has more; one is a dead letter"
    assert await find({ITEMS: more[:6]}, at(6)) == Starts({ITEMS: 0}, AGAIN, []), "it has as many"
    long = [21, *[None] * 1000, 22]
    assert await find({ITEMS: long}, at(900)) == Starts({ITEMS: 0}, AGAIN, []), "only its first record is before"

    quiet = LogState(20, {"shop.items": {0: 6, 1: 0}})
    assert await find({ITEMS: more, OTHER: [24]}, quiet) == Starts({ITEMS: 0, OTHER: 0}, AGAIN, [])


async def test_before_its_first_batch_a_change_log_begins_at_the_offsets_of_the_dump() -> None:
    assert (await find({ITEMS: OLD}, at(4, transaction=-1))).lost == {}


async def test_only_the_partition_whose_records_retention_has_deleted_is_read_from_another_offset() -> None:
    state = LogState(20, {"shop.items": {0: 6, 1: 1}})
    found = await find({ITEMS: [*OLD, *range(21, 30)], OTHER: [20, 30]}, state, {ITEMS: 8})
    loss = Loss("Kafka has deleted records of topic shop.items that were not read", was_deleted=False)
    assert found == Starts({ITEMS: 8, OTHER: 1}, {"shop.items": loss}, [])


async def test_a_partition_without_new_records_is_read_only_once() -> None:
    consumer: Any = FakeConsumer({ITEMS: OLD}, {})
    finder = StartFinder(consumer)
    for _ in range(3):
        await finder.find(at(6), {ITEMS: 6}, ".*")
    assert consumer.reads == 1


async def test_a_topic_that_is_gone_is_reported_once_and_is_a_new_one_when_it_comes_back() -> None:
    found = await find({}, at(6))
    loss = Loss("topic shop.items was deleted, maybe with records that were not read", was_deleted=True)
    assert found == Starts({}, {"shop.items": loss}, ["shop.items"])
    gone = at(6, transaction=25, gone=found.gone)
    assert await find({}, gone) == Starts({}, {}, ["shop.items"])
    assert await find({ITEMS: [26, 27]}, gone) == Starts({ITEMS: 0}, {}, [])
    assert await find({ITEMS: [26, None] * 9}, gone) == Starts({ITEMS: 0}, {}, [])
    assert await find({ITEMS: [*OLD, 26]}, gone) == Starts({ITEMS: 6}, {}, []), "Kafka did not list it for a while"


async def test_topics_that_were_not_read_or_do_not_belong_to_the_lake_may_go() -> None:
    offsets = {"shop.new": {0: 0}, "other.items": {0: 7}}
    assert await find({}, LogState(20, offsets)) == Starts({}, {}, [])


async def test_a_topic_that_belongs_to_the_lake_later_is_read_from_its_first_newer_record_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loss = Loss("topic shop.items had records before the lake read it")
    added: dict[TopicPartition, Records] = {ITEMS: [5, None, 9, 21, 22], OTHER: [22]}
    skipped = {"shop.items": replace(loss, last=9)}
    assert await find(added, LogState(20)) == Starts({ITEMS: 3, OTHER: 0}, skipped, [])
    in_both: dict[TopicPartition, Records] = {ITEMS: [9, 21], OTHER: [7, 22]}
    assert await find(in_both, LogState(20)) == Starts({ITEMS: 1, OTHER: 1}, skipped, [])

    monkeypatch.setattr(starts, "MAX_SKIPPED", 4)  # that would take too long to find
    assert await find(added, LogState(20)) == Starts({ITEMS: 5, OTHER: 0}, {"shop.items": loss}, [])


async def test_a_topic_that_was_created_meanwhile_may_have_lost_its_first_records() -> None:
    loss = Loss("Kafka may have deleted records of topic shop.items that were not read")
    new: dict[TopicPartition, Records] = {ITEMS: [21, 22, 23]}
    assert await find(new, LogState(20), {ITEMS: 1}) == Starts({ITEMS: 1}, {"shop.items": loss}, [])
    assert (await find({ITEMS: [22]}, LogState(20), {ITEMS: 1})).lost == {"shop.items": loss}, "all of them"
    known_then: dict[TopicPartition, Records] = {ITEMS: [19, 20, 23]}
    found = (await find(known_then, LogState(20), {ITEMS: 1})).lost["shop.items"]
    assert found.last == 20, "nothing between was deleted"


async def test_a_topic_that_was_created_meanwhile_is_read_from_its_first_record() -> None:
    assert await find({ITEMS: [None, 21, 22]}, LogState(20)) == Starts({ITEMS: 0}, {}, [])
    assert await find({ITEMS: []}, LogState(20)) == Starts({ITEMS: 0}, {}, [])
