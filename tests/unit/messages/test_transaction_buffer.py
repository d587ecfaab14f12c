"""Changes are buffered until the end of their transaction, with bounded memory."""

import tracemalloc
from typing import Any
from unittest.mock import Mock

import pytest

from databus_core.events import Action, Begin, Table
from databus_messages.formats.base import Change
from databus_messages.message import Message
from databus_messages.outputs import Output
from databus_messages.routing.partitions import Partition
from databus_messages.transaction_buffer import TransactionBuffer

TABLE = Table(schema="shop", name="items", columns=())
BEGIN = Begin(transaction=1, gtid="", file="log.1", server_id=1, thread_id=7, time_us=20)
OUTPUT = Mock(spec_set=Output)


def message(number: int, query: bytes = b"", output: Output = OUTPUT) -> Message:
    ordinals = range(number, number + 1)
    change = Change(TABLE, BEGIN, Action.INSERT, 4, 99, number, ordinals, [[b"%d" % number]], query, table_id=number)
    return Message(output, (Partition("items", number % 3),), change)


def fields(message: Message) -> tuple[Any, ...]:
    """Return the fields to compare; `ordinals` as a list, because buffering may change the type of the sequence."""
    change = message.content
    assert isinstance(change, Change)
    parts = change.table, list(change.ordinals), change.rows, change.query, change.table_id
    return message.output, message.partitions, *parts


def test_changes_are_released_in_order_from_the_file_and_from_memory() -> None:
    buffer, outputs = TransactionBuffer(), [OUTPUT, Mock(spec_set=Output)]
    added = [message(number, b"q" * 100_000, outputs[number % 2]) for number in range(25)]
    for each in added:
        buffer.add([each], 5)
    assert list(map(fields, buffer.release(BEGIN))) == list(map(fields, added))
    assert list(buffer.release(BEGIN)) == []


@pytest.mark.parametrize(("changes", "query_size"), [(50_000, 0), (200, 100_000)])
def test_memory_is_bounded_for_many_small_changes_and_for_large_statements(changes: int, query_size: int) -> None:
    buffer = TransactionBuffer()
    tracemalloc.start()
    try:
        for number in range(changes):
            buffer.add([message(number, b"q" * query_size)], 5)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert sum(1 for _ in buffer.release(BEGIN)) == changes
