"""When the client lists Kafka's topics."""

import asyncio
from typing import Any

import pytest
from aiokafka import TopicPartition

from databus import known_partitions
from databus.known_partitions import KnownPartitions
from databus_core.progress import Progress


class Kafka:
    """One partition in each topic. The ends of a topic that was deleted do not come."""

    def __init__(self) -> None:
        self.topics, self.lists = ["a"], 0

    async def partitions(self) -> list[TopicPartition]:
        self.lists += 1
        return [TopicPartition(topic, 0) for topic in self.topics]

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if any(each.topic not in self.topics for each in partitions):
            await asyncio.Event().wait()
        return dict.fromkeys(partitions, 7)


async def test_topics_are_listed_when_the_publisher_has_opened_some() -> None:
    kafka: Any = Kafka()
    known = KnownPartitions(kafka, 60)

    async def topics(transaction: int, opened: int | None) -> list[str]:
        progress = Progress(transaction=transaction, topics_opened=opened)
        return [each.topic for each in await known.ends(progress, kafka, kafka)]

    assert [await topics(number, 3) for number in (1, 2, 3)] == [["a"]] * 3
    assert kafka.lists == 1
    kafka.topics.append("b")
    assert [await topics(number, 4) for number in (4, 5)] == [["a", "b"]] * 2
    assert kafka.lists == 2
    await topics(6, None)
    await topics(7, None)
    assert kafka.lists == 4  # the publisher is of a version that does not count


async def test_a_deleted_topic_is_noticed_before_its_ends_are_waited_for_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_partitions, "_SECONDS", 0.2)
    kafka: Any = Kafka()
    kafka.topics.append("b")
    known, progress = KnownPartitions(kafka, 60), Progress(transaction=1, topics_opened=3)
    await known.ends(progress, kafka, kafka)
    kafka.topics.remove("b")
    assert list(await known.ends(progress, kafka, kafka)) == [TopicPartition("a", 0)]
    assert kafka.lists == 2
