"""The sink follows a real Kafka on a real Spark; the lake is read with delta-rs, which does not use Spark."""

import pytest

from common.spark import leaves_sockets
from databus_core.events import Action
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_spark_sink.stream import cuts
from integration.sink import DELETE, INSERT, ITEMS, UPDATE, Killed, Sink, kill_after_append
from integration.sink_peers import describe_table

pytestmark = leaves_sockets


async def test_updates_deletes_and_key_changes_are_applied_in_order(sink: Sink) -> None:
    lines = describe_table("lines", "order_id int(11)", "n varchar(9)", "text varchar(9)", key=(0, 1))
    sink.dump({lines: [[b"1", b"a", b"x"], [b"1", b"b", b"y"], [b"2", b"a", b"z"]]})
    await sink.publisher.send(
        (lines, UPDATE, [[b"1", b"b", b"y"], [b"1", b"c", b"y"], [b"1", b"a", b"x"], [b"1", b"b", b"x"]]),
        (lines, DELETE, [[b"2", b"a", b"z"]]),
        (lines, INSERT, [[b"2", b"a", b"new"], [b"9", b"z", b"gone"]]),
        (lines, DELETE, [[b"9", b"z", b"gone"]]),
    )

    await sink.run()

    assert [tuple(row.values()) for row in sink.mirror(lines)] == [(1, "b", "x"), (1, "c", "y"), (2, "a", "new")]
    actions = [action for (action,) in sink.changes(lines, "_action")]
    updates = ["update_before", "update_after"] * 2
    assert actions == [*updates, "delete", "insert", "insert", "delete"]


@pytest.mark.lake
async def test_a_row_that_takes_a_key_and_leaves_it_again_within_one_event_leaves_nothing(sink: Sink) -> None:
    sink.dump({ITEMS: [[b"1", b"one"], [b"8", b"eight"]]})
    await sink.publisher.send(
        # INSERT … VALUES (1), (2) ON DUPLICATE KEY UPDATE id = id + 1
        (ITEMS, UPDATE, [[b"1", b"one"], [b"2", b"one"], [b"2", b"one"], [b"3", b"one"]]),
        # UPDATE … SET id = id + 1 ORDER BY id DESC
        (ITEMS, INSERT, [[b"7", b"seven"]]),
        (ITEMS, UPDATE, [[b"8", b"eight"], [b"9", b"eight"], [b"7", b"seven"], [b"8", b"seven"]]),
    )

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 3, "name": "one"}, {"id": 8, "name": "seven"}, {"id": 9, "name": "eight"}]


async def test_partitions_are_read_in_the_order_of_the_source(sink: Sink) -> None:
    publisher = sink.publisher
    publisher.partitions = 2
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await publisher.send((ITEMS, INSERT, [[b"100", b"x"]]), partition=1)
    await publisher.send((ITEMS, INSERT, [[b"101", b"x"]]), partition=0)
    await publisher.send((ITEMS, Action.TRUNCATE, b"TRUNCATE shop.items"))
    await publisher.send((ITEMS, INSERT, [[b"102", b"x"], [b"200", b"x"]]), partition=1)
    # Rows move to another partition, as if `routes.key` were `name`. A record has the sequence of its first row, so
    # the insert of row 200 has a lower one than its delete.
    await publisher.transaction(
        (ITEMS, DELETE, [[b"102", b"x"]], 1, 0),
        (ITEMS, INSERT, [[b"102", b"y"], [b"200", b"y"]], 0, 0),
        (ITEMS, DELETE, [[b"200", b"x"]], 1, 1),
    )

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 102, "name": "y"}, {"id": 200, "name": "y"}]


@pytest.mark.lake
async def test_a_transaction_whose_records_kafka_shows_before_its_progress_is_not_lost(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [], other: []})
    await sink.publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))
    early = await read_progress(sink.settings)
    await sink.publisher.send((other, INSERT, [[b"1"]]))
    shown = [early, early]  # the marker of the second commit is not yet in the progress topic

    async def read_shown(settings: Settings, *, to_end: bool = False) -> Progress | None:
        hidden = shown.pop() if shown else None
        return hidden if hidden and not to_end else await read_progress(settings, to_end=to_end)

    monkeypatch.setattr(cuts, "read_progress", read_shown)

    await sink.run()

    assert [row["id"] for row in sink.mirror(ITEMS)] == [1]
    assert [row["id"] for row in sink.mirror(other)] == [1]


async def test_a_sink_that_was_killed_after_the_change_log_was_written_catches_up(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], other: []})
    await sink.run()
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (other, INSERT, [[b"1"]]))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after_append(patch)
        await sink.run()
    assert (len(sink.mirror(ITEMS)), len(sink.changes(ITEMS))) == (1, 1)
    await sink.publisher.send((ITEMS, UPDATE, [[b"2", b"two"], [b"3", b"three"]]))

    await sink.run()

    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 3]
    assert [row["id"] for row in sink.mirror(other)] == [1]
    assert [action for (action,) in sink.changes(ITEMS, "_action")] == ["insert", "update_before", "update_after"]
