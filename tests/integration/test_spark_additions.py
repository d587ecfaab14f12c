"""Tables that belong to the lake later are loaded from a dump, and follow their topics from there."""

import pytest

from common.spark import leaves_sockets
from databus_core.events import Action, Row, Table
from databus_spark_sink.stream import starts
from integration.sink import INSERT, ITEMS, Sink
from integration.sink_peers import describe_table

pytestmark = [pytest.mark.lake, leaves_sockets]


async def test_tables_of_a_pattern_that_is_added_are_loaded_from_a_dump(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    publisher, late, quiet = sink.publisher, describe_table("late", "id int(11)"), describe_table("lane", "id int(11)")
    sink.use(tables=["shop.items"])
    sink.dump({ITEMS: []})
    await publisher.send((ITEMS, INSERT, [[b"1", b"one"]]), (late, INSERT, [[b"1"]]))
    await sink.run()
    await publisher.send((late, INSERT, [[b"2"]]))
    sink.use(tables=["shop.items", "shop.l*", "shop.none"])
    sink.dumps.requested, sink.dumps.refused = ["shop.l*"], {"shop.none"}
    dumped: dict[Table, list[Row]] = {late: [[b"1"], [b"2"]], quiet: [[b"7"]], ITEMS: [[b"9", b"older"]]}
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, dumped)]
    sink.dumps.meanwhile = lambda: publisher.send((late, INSERT, [[b"3"]]), (ITEMS, INSERT, [[b"2", b"two"]]))

    await sink.run()

    assert sink.mirror(late) == [{"id": 1}, {"id": 2}, {"id": 3}], "parked meanwhile: its earlier rows were missing"
    assert sink.mirror(quiet) == [{"id": 7}]
    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 2]
    assert sink.changes(late, "_action") == [("insert",)] * 2, "the dump has what was before"
    assert sink.health.degraded == "not loaded: shop.none"
    assert "shop.none could not be loaded: dump-api refused the request" in caplog.text

    await publisher.send((late, INSERT, [[b"4"]]))
    await sink.run()  # the dump is not requested again
    assert [row["id"] for row in sink.mirror(late)] == [1, 2, 3, 4]

    # The account of dump-api did not see the schema yet, for instance.
    none = describe_table("none", "id int(11)")
    sink.dumps.requested, sink.dumps.refused = ["shop.none"], set()
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {none: [[b"1"]]})]
    await sink.run()
    assert (sink.mirror(none), sink.health.degraded) == ([{"id": 1}], "")


async def test_a_table_that_is_added_while_nothing_changes_follows_its_topic(sink: Sink) -> None:
    publisher, late = sink.publisher, describe_table("late", "id int(11)")
    sink.use(tables=["shop.items"])
    sink.dump({ITEMS: []})
    await publisher.send((late, INSERT, [[b"1"]]), (ITEMS, INSERT, [[b"1", b"one"]]))
    await sink.run()
    sink.use(tables=["shop.late", "shop.items"])
    sink.dumps.requested = ["shop.late"]
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {late: [[b"1"]]})]
    await sink.run()
    assert sink.mirror(late) == [{"id": 1}]

    await publisher.send((late, INSERT, [[b"2"]]))
    await sink.run()

    assert sink.mirror(late) == [{"id": 1}, {"id": 2}]
    assert sink.health.degraded == ""


async def test_a_table_that_belongs_to_the_lake_again_is_loaded_again(sink: Sink) -> None:
    publisher = sink.publisher
    again, gone = describe_table("again", "id int(11)"), describe_table("gone", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], again: [[b"1"]], gone: [[b"1"]]})
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (again, Action.DROP, b"DROP TABLE again"))
    await sink.run()
    sink.use(tables=["shop.other"])
    sink.dumps.refused = {"shop.other"}
    await publisher.send(
        (ITEMS, Action.TRUNCATE, b"TRUNCATE items"),
        (ITEMS, INSERT, [[b"3", b"three"]]),
        (again, Action.CREATE, b"CREATE TABLE again"),
        (again, INSERT, [[b"2"]]),
        (gone, Action.DROP, b"DROP TABLE gone"),
    )
    await sink.run()
    sink.use(tables=["shop.*"])
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {ITEMS: [[b"3", b"three"]], again: [[b"2"]]})]

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 3, "name": "three"}]
    assert (sink.mirror(again), sink.mirror(gone)) == ([{"id": 2}], [])
    assert sink.health.degraded == ""


async def test_a_dump_of_before_records_that_are_skipped_is_not_enough(
    sink: Sink, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is read for the first time with the next transaction, which is after the dump."""
    publisher, late = sink.publisher, describe_table("late", "id int(11)")
    sink.use(tables=["shop.items"])
    sink.dump({ITEMS: []})
    await publisher.send((ITEMS, INSERT, [[b"1", b"one"]]), (late, INSERT, [[b"1"]]))
    await sink.run()
    monkeypatch.setattr(starts, "MAX_SKIPPED", 0)
    sink.use(tables=["shop.items", "shop.late"], heal="auto")
    sink.dumps.requested = ["shop.late"]
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {late: [[b"1"]]})]

    async def meanwhile() -> None:
        sink.dumps.meanwhile = None
        await publisher.send((late, INSERT, [[b"2"]]))
        rows: list[Row] = [[b"1"], [b"2"]]
        sink.dumps.on_request += [sink.dumps.manifest(publisher.position, {late: rows})]

    sink.dumps.meanwhile = meanwhile

    await sink.run()

    assert "records that are newer than its dump are missing" in caplog.text
    assert sink.mirror(late) == [{"id": 1}, {"id": 2}]


async def test_a_topic_that_is_found_too_late_does_not_start_with_its_old_records(sink: Sink) -> None:
    late = describe_table("late", "id int(11)")
    sink.use(tables=["shop.items"])
    sink.dump({ITEMS: []})
    await sink.publisher.send((ITEMS, INSERT, [[b"1", b"one"]]), (late, INSERT, [[b"1"]]))
    await sink.run()
    sink.use(tables=["shop.*"])
    sink.dumps.refused = {"shop.*"}
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    await sink.run()
    assert sink.health.degraded == "not loaded: shop.*"

    await sink.publisher.send((late, INSERT, [[b"2"]]))
    await sink.run()

    assert sink.health.degraded == "parked: shop.late; not loaded: shop.*"
    assert sink.changes(late, "_action") == [("insert",)], "a dump has what was before"
