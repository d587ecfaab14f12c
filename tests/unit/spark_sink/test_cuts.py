"""Where a batch ends: all that it has is of its transactions, whatever was replayed into the partitions."""

import random
from typing import Any

import pytest
from aiokafka import TopicPartition

from databus_core.settings import Settings
from databus_spark_sink.stream import cuts
from databus_spark_sink.stream.cuts import Cuts
from unit.spark_sink.fake_consumer import FakeConsumer, Records

#: the last transaction
LAST = 100


async def cut(records: dict[TopicPartition, Records], after: int, last: int) -> tuple[dict[TopicPartition, int], int]:
    consumer: Any = FakeConsumer(records, {})
    starts, ends = dict.fromkeys(records, 0), {each: len(found) for each, found in records.items()}
    return await Cuts(Settings(name="shop"), consumer, consumer)._cut(starts, ends, after, last)


async def test_replayed_dead_letters_at_the_end_of_a_partition_do_not_hide_what_is_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuts, "MAX_RECORDS", 100)
    partition = TopicPartition("shop.items", 0)
    records = [*range(41, 241), *range(50, 70), 241, 242]
    assert await cut({partition: records}, after=40, last=242) == ({partition: 100}, 140)


async def test_a_batch_is_larger_if_its_only_transaction_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "MAX_RECORDS", 10)
    partition = TopicPartition("shop.items", 0)
    records = [*[7] * 25, 3, 8, 9]
    assert await cut({partition: records}, after=6, last=9) == ({partition: 26}, 7)
    assert await cut({partition: records[:26]}, after=6, last=9) == ({partition: 26}, 9)


def published(generator: random.Random) -> dict[TopicPartition, list[int | None]]:
    """Publish transactions to partitions, and replay older ones in between, one by one or many at once."""
    partitions = [TopicPartition("shop.items", number) for number in range(3)]
    records: dict[TopicPartition, list[int | None]] = {each: [] for each in partitions}
    for transaction in range(1, LAST + 1):
        for partition in generator.sample(partitions, generator.randint(0, 2)):
            records[partition] += [transaction] * generator.choice([1, 1, 2, 40]) + [None]
        if generator.random() < 0.05:
            letters = [generator.randint(1, transaction) for _ in range(generator.choice([1, 5, 90]))]
            records[generator.choice(partitions)] += sorted(letters) if generator.random() < 0.5 else letters
    return records


@pytest.mark.parametrize("seed", range(20))
async def test_a_batch_has_all_of_its_transactions_and_nothing_of_later_ones(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    generator = random.Random(seed)
    monkeypatch.setattr(cuts, "MAX_RECORDS", generator.choice([1, 10, 100]))
    records, after, batches = published(generator), 0, 0
    while after < LAST:
        ends, last = await cut(records, after, LAST)
        assert after < last <= LAST
        for partition, end in ends.items():
            assert all(each <= last for each in records[partition][:end] if each is not None)
            rest = [each for each in records[partition][end:] if each is not None]
            assert not rest or rest[0] > last, "it ends no earlier than it must"
            records[partition] = records[partition][end:]
        after, batches = last, batches + 1
    assert batches > 1
    assert not any(records.values())
