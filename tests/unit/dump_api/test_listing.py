"""Filters and pages of the list of dumps."""

from datetime import UTC, datetime, timedelta

import pytest

from databus_core.events import Table
from databus_core.manifest import Manifest, State
from databus_dump_api.listing import page
from databus_dump_api.problems import UnknownCursor


def dump(number: int, state: State = State.COMPLETE, *tables: str) -> Manifest:
    """A dump of tables of schema `shop`; two at a time were requested in the same moment."""
    created = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=number // 2)
    found = tuple(Table(schema="shop", name=name, columns=()) for name in tables)
    return Manifest(id=f"d{number}", pipeline="shop", state=state, created=created, tables=found)


def test_pages_together_have_all_dumps_also_if_some_are_deleted_and_added_between() -> None:
    dumps = [dump(number) for number in range(9, 0, -1)]
    found, cursor = [], None
    while True:
        answer = page(dumps, [], None, 2, cursor)
        assert len(answer.dumps) <= 2
        found += [each.id for each in answer.dumps]
        if answer.next is None:
            break
        cursor = answer.next
        dumps = [dump(20), *(each for each in dumps if each != answer.dumps[0])]
    assert found == ["d9", "d8", "d7", "d6", "d5", "d4", "d3", "d2", "d1"]


def test_dumps_are_filtered_by_state_and_table() -> None:
    dumps = [dump(3, State.RUNNING, "b"), dump(2, State.COMPLETE, "a", "b"), dump(1, State.FAILED, "abc")]

    def found(states: list[State], table: str | None) -> list[str]:
        return [each.id for each in page(dumps, states, table, None, None).dumps]

    assert found([], None) == ["d3", "d2", "d1"]
    assert found([State.FAILED, State.RUNNING], None) == ["d3", "d1"]
    assert found([], "shop.b") == ["d3", "d2"]
    assert found([], "shop.a*") == ["d2", "d1"]
    assert found([State.COMPLETE], "shop.abc") == []


@pytest.mark.parametrize("cursor", ["x", "é", "MjAyNg==", "bm90IGEgdGltZSBk", "MjAyNi0wMS0wMVQwMDowMDowMCBk"])
def test_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    with pytest.raises(UnknownCursor):
        page([dump(1)], [], None, 2, cursor)
