"""Our record batches equal aiokafka's, byte for byte; integration tests show that brokers accept them."""

import random
from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition

from databus_core.settings.publisher import Compression
from databus_messages.formats.base import Record
from databus_publisher.batches import BATCH_BYTES
from databus_publisher.record_batch import RecordBatch
from databus_wire.kafka_records import sequence_text

LIMIT = 20_000
NOW_MS = 1_700_000_000_000
SIZES = [0, 1, 5, 62, 63, 64, 65, 127, 128, 700, 8191, 8192, 30_000]


def theirs(transactional: bool, limit: int = LIMIT) -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=transactional,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=0,
        batch_size=limit,
    )


def keys_values(*records: Record) -> tuple[list[bytes | None], list[bytes | None]]:
    return [record.key for record in records], [record.value for record in records]


def any_records(draw: random.Random, *, headers: bool) -> Iterator[Record]:
    def field() -> bytes | None:
        return None if draw.random() < 0.1 else draw.randbytes(draw.choice(SIZES))

    while True:
        some = [(draw.choice(["", "id", "für"]), draw.randbytes(draw.choice(SIZES[:8]))) for _ in range(3)]
        yield Record(field(), field(), some if headers and draw.random() < 0.2 else ())


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("headers", [False, True])
def test_a_batch_has_the_same_bytes_as_aiokafkas(transactional: bool, headers: bool) -> None:
    draw, now = random.Random(8), NOW_MS
    for _ in range(200):
        ours, other = RecordBatch(LIMIT, transactional=transactional), theirs(transactional)
        for count, record in enumerate(any_records(draw, headers=headers)):
            now += draw.choice([0, 0, 0, 1, 70, 9000, -1, -9000])
            if headers or not count:  # only what `append` adds may exceed the limit, as the first record
                added: int = ours.append(now, record.key, record.value, record.headers)
            else:
                added = ours.extend(now, *keys_values(record))
            their_metadata = other.append(count, now, record.key, record.value, list(record.headers))
            assert bool(added) == (their_metadata is not None)
            assert (ours.size(), ours.record_count()) == (other.size(), count + bool(added))
            if not added:
                break
        state = draw.randrange(2**63), draw.randrange(2**15), draw.randrange(2**31)
        ours._set_producer_state(*state)
        other.set_producer_state(*state)
        assert ours._build() == other.build()


def test_of_records_that_are_packed_together_the_first_must_not_exceed_the_limit_either() -> None:
    ours, other = (RecordBatch(LIMIT, transactional=True) for _ in range(2))
    assert other.extend(NOW_MS, [None], [bytes(LIMIT - 1000)]) == 1
    room = LIMIT - 1000 + LIMIT - other.size()  # for a value
    assert ours.extend(NOW_MS, [None], [bytes(room + 1)]) == 0
    assert ours.extend(NOW_MS, [None], [bytes(room)]) == 1
    assert ours.size() == LIMIT


@pytest.mark.parametrize(("compression", "codec"), [("lz4", 3), ("zstd", 4)])
def test_a_compressed_batch_has_the_same_records(compression: Compression, codec: int) -> None:
    records = [Record(b"%d" % number, b"value " * 20) for number in range(100)]
    batch = RecordBatch(BATCH_BYTES, transactional=True, compression=compression)
    batch.extend(NOW_MS, *keys_values(*records))
    for state in ((1, 2, 3), (1, 3, 0)):  # the second is that of a retry
        batch._set_producer_state(*state)
        built = bytes(batch._build())
        read = DefaultRecordBatch(built)
        assert read.validate_crc()
        assert (read.compression_type, read.producer_id, read.producer_epoch, read.base_sequence) == (codec, *state)
        assert [(record.key, record.value) for record in read] == [record[:2] for record in records]
        assert len(built) < batch.size() / 4


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_batch_that_compression_would_enlarge_is_not_compressed(compression: Compression) -> None:
    batch = RecordBatch(LIMIT, transactional=True, compression=compression)
    batch.append(NOW_MS, b"key", value := random.Random(1).randbytes(LIMIT // 2))
    built = bytes(batch._build())
    assert (len(built), DefaultRecordBatch(built).compression_type) == (batch.size(), 0)
    assert [record.value for record in DefaultRecordBatch(built)] == [value]


def test_a_batch_of_many_small_records_has_the_same_bytes_as_aiokafkas() -> None:
    records = [Record(b"%d" % number, None) for number in range(10_000)]
    ours, other = RecordBatch(BATCH_BYTES, transactional=True), theirs(True, BATCH_BYTES)
    assert ours.extend(NOW_MS, *keys_values(*records)) == 10_000
    for number, record in enumerate(records):
        assert other.append(number, NOW_MS, record.key, record.value, []) is not None
    assert ours._build() == other.build()


@pytest.mark.parametrize("per_row", [1, 2])
@pytest.mark.parametrize("ordinals", [range(7, 307), range(7, 907, 3), [*range(9_999_999_700, 10**10)]])
def test_records_that_are_packed_together_have_their_sequences_as_headers(
    per_row: int, ordinals: Sequence[int]
) -> None:
    ours, other = RecordBatch(BATCH_BYTES, transactional=True), theirs(True, BATCH_BYTES)
    texts: list[bytes | None] = [b"%d" % number for number in range(300 * per_row)]
    assert ours.extend(NOW_MS, texts, texts, 0, 12, ordinals) == 300 * per_row
    for number, text in enumerate(texts):
        header = "databus.sequence", b"0000000000000012-%010d" % ordinals[number // per_row]
        assert other.append(number, NOW_MS, text, text, [header]) is not None
    assert ours._build() == other.build()


def test_a_record_of_many_rows_has_the_sequence_of_the_first_and_packing_goes_on_in_the_next_batch() -> None:
    ours, other = RecordBatch(BATCH_BYTES, transactional=True), theirs(True, BATCH_BYTES)
    assert ours.extend(NOW_MS, [None], [b"v"], 0, 1, range(5, 9)) == 1
    assert ours.extend(NOW_MS, [None] * 4, [b"v"] * 4, 3, 1, [5, 6, 7, 11]) == 1
    for number, ordinal in enumerate([5, 11]):
        other.append(number, NOW_MS, None, b"v", [("databus.sequence", b"0000000000000001-%010d" % ordinal)])
    assert ours._build() == other.build()


def test_sequences_sort_like_their_ordinals_and_others_than_those_that_fit_are_refused() -> None:
    assert sequence_text(10**16 - 1, 10**10 - 1) == b"9999999999999999-9999999999"
    pairs = [(draw(), draw()) for draw in [partial(random.Random(3).choice, [0, 1, 9, 10, 99, 100, 10**9])] * 99]
    assert sorted(pairs) == sorted(pairs, key=lambda pair: sequence_text(*pair))
    for transaction, row in (10**16, 0), (-1, 0), (0, 10**10), (0, -1):
        with pytest.raises(OverflowError, match="does not fit a sequence"):
            sequence_text(transaction, row)
        with pytest.raises(OverflowError, match="does not fit a sequence"):
            RecordBatch(LIMIT, transactional=True).extend(NOW_MS, [b""], [b""], 0, transaction, [row])
    with pytest.raises(ValueError, match="needs the ordinal of a row"):
        RecordBatch(LIMIT, transactional=True).extend(NOW_MS, [b""], [b""], 0, 1, ())


async def test_aiokafka_resends_a_batch_with_the_same_bytes() -> None:
    partition = TopicPartition("t", 0)
    cluster: Any = SimpleNamespace(leader_for_partition=lambda _: 1)
    transactions = TransactionManager(None, 60_000)
    transactions.set_pid_and_epoch(77, 3)
    accumulator = MessageAccumulator(cluster, BATCH_BYTES, 0, 30, txn_manager=transactions)
    batch = RecordBatch(BATCH_BYTES, transactional=True)
    records = [Record(b"%d" % number, b"x" * number) for number in range(100)]
    assert batch.extend(NOW_MS, *keys_values(*records)) == 100
    await accumulator.add_batch(batch, partition, 1)
    sent = []
    for _ in range(2):
        ready, _ = accumulator.drain_by_nodes(ignore_nodes=[])
        (drained,) = ready[1].values()
        sent.append(bytes(drained.get_data_buffer()))
        accumulator.reenqueue(drained)
    assert sent[0] == sent[1]
    read = DefaultRecordBatch(sent[0])
    assert read.validate_crc()
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (77, 3, 0)
    assert [(record.key, record.value) for record in read] == [(record.key, record.value) for record in records]


def test_a_batch_is_built_again_only_for_a_new_producer_state() -> None:
    batch = RecordBatch(LIMIT, transactional=True)
    assert batch.append(NOW_MS, b"k", b"v", ())
    batch._set_producer_state(1, 2, 3)
    assert batch._build() is batch._build()
    batch._set_producer_state(1, 3, 0)
    read = DefaultRecordBatch(bytes(batch._build()))
    assert read.validate_crc()
    assert (read.producer_epoch, read.base_sequence) == (3, 0)


def test_a_closed_batch_accepts_no_records() -> None:
    for close in (RecordBatch.close, RecordBatch._build):
        batch = RecordBatch(LIMIT, transactional=False)
        assert batch.append(NOW_MS, b"k", b"v", ())
        close(batch)
        assert batch.closed()
        assert not batch.append(NOW_MS, b"k", b"v", ())
        assert batch.extend(NOW_MS, [b"k"], [b"v"]) == 0
        assert DefaultRecordBatch(bytes(batch._build())).validate_crc()


def test_extend_adds_records_from_an_index_until_one_does_not_fit() -> None:
    batch = RecordBatch(LIMIT, transactional=False)
    keys, values = [b"a", b"b", b"c", b"d"], (b"1", b"2", b"3" * LIMIT, b"4")
    assert [batch.extend(NOW_MS, keys, values, first) for first in (0, 2, 3, 4)] == [2, 0, 1, 0]
    assert [record.key for record in DefaultRecordBatch(bytes(batch._build()))] == [b"a", b"b", b"d"]


def test_the_first_record_is_accepted_whatever_its_size() -> None:
    batch = RecordBatch(LIMIT, transactional=False)
    assert batch.append(NOW_MS, None, b"v" * 10 * LIMIT, ())
    assert batch.size() > 10 * LIMIT
    assert not batch.append(NOW_MS, None, None, ())


@pytest.mark.parametrize("wrong", [("text", b""), (b"", 7)])
def test_invalid_arguments_leave_the_batch_unchanged(wrong: tuple[bytes, bytes]) -> None:
    batch, untouched = (RecordBatch(LIMIT, transactional=False) for _ in range(2))
    for each in batch, untouched:
        each.append(NOW_MS, b"k", b"v", ())
    with pytest.raises(TypeError):
        batch.append(NOW_MS, *wrong, ())
    with pytest.raises(TypeError):
        batch.extend(NOW_MS, *keys_values(Record(*wrong)))
    with pytest.raises(TypeError):
        batch.append(NOW_MS, b"k", b"v", [("name", wrong)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="as many keys as values"):
        batch.extend(NOW_MS, [b"k"], [])
    with pytest.raises(ValueError, match="must not be negative"):
        batch.extend(NOW_MS, [b"k"], [b"v"], -1)
    assert batch._build() == untouched._build()
