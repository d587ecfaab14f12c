"""The load of a whole table ends before Kafka aborts its transaction, and is not tried again."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from databus_binlog.row_batch import RowBatch
from databus_core.errors import GenerationLost
from databus_core.table_states import Backfill
from databus_reader.backfill.whole_loads import WholeLoads
from unit.reader.backfilled import batch, settings

T = Backfill(id="1", schema="shop", table="t")


async def rows(*pauses: float) -> AsyncIterator[RowBatch]:
    """Return a row after each pause."""
    for pause in pauses:
        await asyncio.sleep(pause)
        yield batch(1)


def loads(timeout: float, delivery: str = "exactly_once") -> WholeLoads:
    return WholeLoads(settings(publisher={"transaction_timeout": timeout, "delivery": delivery}))


@pytest.mark.parametrize("pauses", [[0, 0.3, 0.3, 0.3, 0.3], [0, 0.7, 0]], ids=["all rows", "one pause"])
async def test_a_load_that_takes_too_long_is_not_tried_again(pauses: list[float]) -> None:
    of = loads(1)
    assert not of.refusal(T)
    with pytest.raises(GenerationLost, match=r"backfill of shop\.t takes too long"):
        async for _ in of.within_time(T, rows(*pauses)):
            pass
    assert (
        "longer than publisher.transaction_timeout=1s: unless the publisher or Kafka was away, raise it"
        in of.refusal(T)
    )
    assert not of.refusal(Backfill(id="2", schema="shop", table="t"))


async def test_the_wait_for_the_first_row_does_not_count() -> None:
    assert [each.count async for each in loads(1).within_time(T, rows(1.1, 0))] == [1, 1]
    assert [each async for each in loads(1).within_time(T, rows())] == []


async def test_without_transactions_there_is_no_limit() -> None:
    of = loads(0.1, "at_least_once")
    assert [each.count async for each in of.within_time(T, rows(0, 0.3))] == [1, 1]
