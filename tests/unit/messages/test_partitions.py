"""The rows of an event are split by partition: no row is lost or duplicated, and rows of one key stay in order."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from databus_core.events import Action, Begin, Row, Table
from databus_messages.formats.base import Change
from databus_messages.routing.partitions import Part, partition_of_row, split_by_key

KEY = (0, 2)
#: cells of the key: only a few values, so that several rows have the same key
key_cells = st.sampled_from([b"", b"1", b"2", b"10", b"\0", b"\xff"])


def change(action: Action, rows: list[Row], first: int) -> Change:
    changes = len(rows) // (2 if action is Action.UPDATE else 1)
    begin = Begin(transaction=1, gtid="", file="log.1", server_id=1, thread_id=1, time_us=1)
    table = Table(schema="s", name="t", columns=())
    return Change(table, begin, action, 4, 99, first, range(first, first + changes), rows)


def joined(event: Change, parts: list[Part]) -> list[tuple[int, Action, list[Row]]]:
    """Return ordinal, action and images of each change, sorted by ordinal.

    If an update was split, its delete comes before its insert.
    """
    found = []
    for part in parts:
        size = 2 if part.action is Action.UPDATE else 1
        images = [part.rows[start : start + size] for start in range(0, len(part.rows), size)]
        found += [(n, part.action, image) for n, image in zip(part.of(event).ordinals, images, strict=True)]
    return sorted(found, key=lambda change: (change[0], change[1] is Action.INSERT))


#: rows of three columns: a unique number between the two columns of the key
keyed_rows = st.lists(st.tuples(key_cells, key_cells)).map(
    lambda keys: [[a, str(n).encode(), b] for n, (a, b) in enumerate(keys)]
)


@settings(deadline=None)
@given(keyed_rows, st.integers(1, 5), st.integers(0, 9), st.sampled_from([Action.INSERT, Action.DELETE]))
def test_each_row_goes_once_and_in_order_to_the_partition_of_its_key(
    rows: list[Row], partitions: int, first: int, action: Action
) -> None:
    event = change(action, rows, first)
    parts = split_by_key(event, KEY, partitions)
    assert joined(event, parts) == [(first + n, action, [row]) for n, row in enumerate(rows)]
    assert len({part.partition for part in parts}) == len(parts)
    for part in parts:
        assert part.indexes == sorted(part.indexes)
        assert all(partition_of_row(row, KEY, partitions) == part.partition for row in part.rows)


@settings(deadline=None)
@given(keyed_rows.filter(lambda rows: len(rows) % 2 == 0), st.integers(1, 5))
def test_an_update_that_moves_a_row_to_another_partition_becomes_a_delete_and_an_insert(
    rows: list[Row], partitions: int
) -> None:
    expected = []
    for ordinal, (before, after) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
        if partition_of_row(before, KEY, partitions) == partition_of_row(after, KEY, partitions):
            expected.append((ordinal, Action.UPDATE, [before, after]))
        else:
            expected += [(ordinal, Action.DELETE, [before]), (ordinal, Action.INSERT, [after])]
    event = change(Action.UPDATE, rows, 0)
    parts = split_by_key(event, KEY, partitions)
    assert joined(event, parts) == expected
    by_partition = defaultdict(list)
    for part in parts:
        by_partition[part.partition] += part.indexes
        assert all(partition_of_row(row, KEY, partitions) == part.partition for row in part.rows)
    assert all(indexes == sorted(indexes) for indexes in by_partition.values())


def test_the_partition_of_a_key_never_changes() -> None:
    assert [partition_of_row([str(n).encode(), b"x"], (0,), 4) for n in range(8)] == [1, 3, 1, 3, 0, 2, 0, 2]
