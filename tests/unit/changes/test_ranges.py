"""Ranges of a table's primary key, by a server's estimates."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from databus_binlog.session import Session
from databus_changes.snapshot import ranges
from databus_changes.snapshot.ranges import KeyRange, key_ranges
from databus_core.events import Column, Table

COLUMNS = (Column(name="id", type="bigint", raw_type="bigint(20)"), Column(name="n", type="char", raw_type="char(9)"))


class Server:
    """Has a table with keys from 0 to 2^63 - 1. `estimate` returns the estimated rows between two keys."""

    server = SimpleNamespace(flavor="mariadb")

    def __init__(self, estimate: Any) -> None:
        self._estimate = estimate
        self.estimates = 0

    async def query(self, sql: str) -> list[tuple[object, ...]]:
        if "MIN(" in sql:
            return [(0, 2**63 - 1)]
        if sql.startswith("EXPLAIN"):
            self.estimates += 1
            low, high = map(int, re.findall(r"BETWEEN (\d+) AND (\d+)", sql)[0])
            return [(1, "SIMPLE", "t", "range", "PRIMARY", "PRIMARY", "8", None, self._estimate(low, high), "")]
        return []


async def ranges_of(server: Server, *key: int) -> list[KeyRange]:
    table = Table(schema="shop", name="t", columns=COLUMNS, primary_key=key)
    return await key_ranges(cast(Session, server), table, 1000)


async def test_gaps_cost_few_estimates() -> None:
    first, rows = 10**18, 100_000  # the other keys are not in use
    server = Server(lambda low, high: max(0, min(high, first + rows - 1) - max(low, first) + 1))
    found = await ranges_of(server, 0)
    assert 100 <= len(found) <= 250
    assert server.estimates < 1000
    bounds = [each.low for each in found[1:]]
    assert bounds == sorted(bounds) == [each.high for each in found[:-1]]
    assert found[0].low is found[-1].high is None


def test_the_condition_of_a_range() -> None:
    table = Table(schema="shop", name="t", columns=COLUMNS, primary_key=(0,))
    limits = [(None, None), (None, 5), (-3, 5), (5, None)]
    conditions = ["", "`id` < 5", "`id` >= -3 AND `id` < 5", "`id` >= 5"]
    assert [KeyRange(*each).condition(table) for each in limits] == conditions


async def test_estimates_that_do_not_get_smaller_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_MOST_ESTIMATES", 500)
    server = Server(lambda low, high: 10**6)
    assert len(await ranges_of(server, 0)) > 1
    assert server.estimates < 600


@pytest.mark.parametrize("key", [(), (1,), (1, 0)])
async def test_other_keys_are_not_divided(key: tuple[int, ...]) -> None:
    server = Server(lambda low, high: 10**6)
    assert await ranges_of(server, *key) == [KeyRange()]
    assert server.estimates == 0
