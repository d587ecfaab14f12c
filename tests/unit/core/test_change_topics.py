"""Which settings changes can be read with, and how long a consumer waits for the ends of topics."""

import itertools
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from databus_core import kafka_ends
from databus_core.change_topics import ChangeTopics
from databus_core.errors import InvalidSettings, KafkaUnavailable
from databus_core.settings import Settings

PARTITION = TopicPartition("shop.items", 0)


def settings(**publisher: Any) -> Settings:
    return Settings(name="shop", publisher=publisher)


@pytest.mark.parametrize(
    ("publisher", "message"),
    [
        ({"delivery": "at_least_once"}, "publisher.delivery: exactly_once is needed to read changes"),
        ({"format": "maxwell-json"}, "no rule of output default publishes in format databus: add one"),
    ],
)
def test_topics_whose_records_are_no_exact_changes_are_refused(publisher: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        ChangeTopics(settings(**publisher), ["shop.*"])


class Ends:
    """Returns the partition's end: 9, or 5 as long as a transaction is open there."""

    def __init__(self, open_minutes: int = 0) -> None:
        self._open = open_minutes

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        self._open -= 1
        return dict.fromkeys(partitions, 9 if self._open < 0 else 5)


async def test_a_consumer_waits_as_long_as_the_publisher_may_need_for_a_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting: Any = partial(kafka_ends.stable_ends, 15 * 60, Ends())
    monkeypatch.setattr(kafka_ends, "time", SimpleNamespace(monotonic=itertools.count(step=60).__next__))
    assert await waiting(Ends(open_minutes=15), [PARTITION]) == {PARTITION: 9}
    with pytest.raises(KafkaUnavailable, match=r"shop\.items, partition 0: .* before offset 9 .* more than 960 s"):
        await waiting(Ends(open_minutes=30), [PARTITION])
