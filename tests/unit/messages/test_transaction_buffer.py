"""Changes that wait for the end of their transaction."""

import tracemalloc
from typing import Any
from unittest.mock import Mock

import pytest

from databus.events import Action, Begin, Table
from databus_messages.formats.base import Change
from databus_messages.routing.routes import Route
from databus_messages.transaction_buffer import TransactionBuffer

TABLE = Table(schema="shop", name="items", columns=())
BEGIN = Begin(transaction=1, gtid="", file="log.1", server_id=1, thread_id=7, time_us=20)
ROUTE = Mock(spec_set=Route, table=TABLE)


def change(number: int, **of: Any) -> Change:
    return Change(TABLE, BEGIN, Action.INSERT, 4, 99, number, range(number, number + 1), [[b"%d" % number]], **of)


def test_changes_come_back_in_order_from_memory_and_file() -> None:
    buffer, routes = TransactionBuffer(), [ROUTE, Mock(spec_set=Route, table=TABLE)]
    kept = [(routes[number % 2], change(number, query=b"q" * 100_000)) for number in range(25)]
    for route, one in kept:
        buffer.add(route, one, 5)
    back = list(buffer.release(BEGIN))
    assert [(route, one.ordinals[0], one.rows, one.query) for route, one in back] == [
        (route, one.first, one.rows, one.query) for route, one in kept
    ]
    assert list(buffer.release(BEGIN)) == []


@pytest.mark.parametrize(("changes", "query"), [(50_000, 0), (200, 100_000)])
def test_memory_is_bounded_whatever_the_changes_are(changes: int, query: int) -> None:
    buffer = TransactionBuffer()
    tracemalloc.start()
    try:
        for number in range(changes):
            buffer.add(ROUTE, change(number, query=b"q" * query), 5)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert sum(1 for _ in buffer.release(BEGIN)) == changes
