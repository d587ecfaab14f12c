"""A lake whose pipeline was reset, or publishes by other rules: no mirror goes on as if nothing was missing."""

from typing import Any

import pytest

from common.spark import leaves_sockets
from databus_core.errors import RulesDiffer
from databus_core.events import Action, Row, Table
from databus_core.progress import Routes
from databus_core.routes import fingerprint
from databus_core.settings import Publisher
from databus_spark.formats import open_table
from integration.sink import INSERT, ITEMS, Killed, Sink, kill_after_append
from integration.sink_peers import describe_table

pytestmark = leaves_sockets

OTHER, GONE = describe_table("other", "id int(11)"), describe_table("gone", "id int(11)")


@pytest.mark.lake
async def test_after_a_reset_all_tables_are_loaded_from_one_dump(sink: Sink) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"]], GONE: [[b"1"]]})
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    await sink.run()
    await publisher.begin_again()  # at the end of the binlog: shop.gone was dropped, shop.other created before it
    sink.use(heal="auto")
    rows = {ITEMS: [[b"1", b"one"], [b"3", b"three"]], OTHER: [[b"1"]]}
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, rows)]

    await sink.run()

    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 3]
    assert (sink.mirror(OTHER), sink.mirror(GONE)) == ([{"id": 1}], [])
    assert sink.health.degraded == ""
    await publisher.send((ITEMS, INSERT, [[b"4", b"four"]]), (GONE, Action.CREATE, b"CREATE TABLE gone"))
    await publisher.send((GONE, INSERT, [[b"7"]]))
    await sink.run()
    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 3, 4]
    assert sink.mirror(GONE) == [{"id": 7}]


@pytest.mark.lake
async def test_after_a_reset_with_a_snapshot_each_table_waits_for_its_rows_in_the_stream(sink: Sink) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"]], GONE: [[b"1"]]})
    await sink.run()
    sink.use(heal="auto")  # but no dump is requested
    await publisher.begin_again(snapshot=True)
    await publisher.send((ITEMS, Action.TRUNCATE, b"TRUNCATE items"), (ITEMS, INSERT, [[b"3", b"three"]]))

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 3, "name": "three"}]
    assert sink.health.degraded == "parked: shop.gone", "it may not exist any more"


@pytest.mark.lake
async def test_a_table_that_is_published_by_another_rule_is_loaded_again(sink: Sink) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"]], OTHER: [[b"1"]]})
    publisher.routes = before = Routes(fingerprint(sink.settings.publisher.rules))
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    await sink.run()
    rules: list[dict[str, Any]] = [{"match": ["shop.items"], "mask": ["name"]}, {"match": ["*.*"]}]
    masking = Publisher(**sink.settings.publisher.model_dump() | {"routes": rules})
    await publisher.send((ITEMS, INSERT, [[b"3", b"three"]]))
    publisher.routes = Routes(fingerprint(masking.rules), publisher.transaction_number, before.fingerprint)
    await publisher.send((ITEMS, INSERT, [[b"4", b"***"]]), (OTHER, INSERT, [[b"2"]]))

    with pytest.raises(RulesDiffer, match="restart the one that has the old settings"):
        await sink.run()
    sink.settings = sink.settings.model_copy(update={"publisher": masking})
    sink.use(heal="auto")
    sink.dumps.requested = ["shop.items"]
    masked = [[str(number).encode(), b"***"] for number in (1, 2, 3, 4)]
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {ITEMS: masked})]
    await sink.run()

    assert {row["name"] for row in sink.mirror(ITEMS)} == {"***"}
    assert sink.mirror(OTHER) == [{"id": 1}, {"id": 2}]
    assert sink.health.degraded == ""

    # Other rules were tried and taken back while the sink was down: nobody knows what they were.
    was = publisher.routes
    publisher.routes = Routes(was.fingerprint, publisher.transaction_number, was.before, was.after + 1)
    await publisher.send((OTHER, INSERT, [[b"4"]]))
    sink.dumps.requested = ["shop.*"]
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {ITEMS: masked, OTHER: [[b"3"], [b"4"]]})]
    await sink.run()
    assert sink.mirror(OTHER) == [{"id": 3}, {"id": 4}]


@pytest.mark.lake
@pytest.mark.parametrize("is_there", [True, False])
async def test_a_table_that_the_sink_meets_just_before_a_reset_is_loaded_again(sink: Sink, is_there: bool) -> None:
    """Its CREATE TABLE and the reset come in one read of Kafka; what the reset left out is not known."""
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await sink.run()
    await publisher.send((OTHER, Action.CREATE, b"CREATE TABLE other"), (OTHER, INSERT, [[b"1"]]))
    await publisher.begin_again()
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    sink.use(heal="auto")
    rows: dict[Table, list[Row]] = {ITEMS: [[b"1", b"one"], [b"2", b"two"]]} | ({OTHER: [[b"8"]]} if is_there else {})
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, rows)]

    await sink.run()

    assert sink.mirror(OTHER) == ([{"id": 8}] if is_there else [])
    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 2]
    assert sink.health.degraded == ""


@pytest.mark.lake
@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_table_that_the_sink_meets_in_records_of_other_rules_is_loaded_again(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: []})
    publisher.routes = before = Routes(fingerprint(sink.settings.publisher.rules))
    await publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))
    await sink.run()
    named = describe_table("named", "id int(11)", "name char(9)")
    await publisher.send((named, Action.CREATE, b"CREATE TABLE named"), (named, INSERT, [[b"1", b"one"]]))
    rules: list[dict[str, Any]] = [{"match": ["shop.named"], "mask": ["name"]}, {"match": ["*.*"]}]
    masking = Publisher(**sink.settings.publisher.model_dump() | {"routes": rules})
    publisher.routes = Routes(fingerprint(masking.rules), publisher.transaction_number, before.fingerprint)
    await publisher.send((named, INSERT, [[b"2", b"***"]]))
    sink.settings = sink.settings.model_copy(update={"publisher": masking})
    sink.use(heal="auto")
    rows: dict[Table, list[Row]] = {ITEMS: [[b"1", b"one"]], named: [[b"1", b"***"], [b"2", b"***"]]}
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, rows)]
    if is_killed:
        with monkeypatch.context() as patch, pytest.raises(Killed):
            kill_after_append(patch)
            await sink.run()

    await sink.run()

    assert sink.mirror(named) == [{"id": 1, "name": "***"}, {"id": 2, "name": "***"}]
    assert sink.health.degraded == ""


@pytest.mark.lake
@pytest.mark.parametrize("was_dropped_before", [True, False])
async def test_a_lake_that_begins_after_a_reset_has_no_rows_of_a_table_that_is_gone(
    sink: Sink, caplog: pytest.LogCaptureFixture, was_dropped_before: bool
) -> None:
    """The dump lacks the table, so its topic is read from the beginning. The reset may have left out its DROP."""
    publisher = sink.publisher
    await publisher.send((GONE, Action.CREATE, b"CREATE TABLE gone"), (GONE, INSERT, [[b"1"]]))
    if was_dropped_before:
        await publisher.send((GONE, Action.DROP, b"DROP TABLE gone"))
    await publisher.begin_again()
    sink.dump({ITEMS: [[b"1", b"one"]]}, kafka_offsets={}, transaction=publisher.transaction_number)
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    sink.use(heal="auto")
    rows: dict[Table, list[Row]] = {ITEMS: [[b"1", b"one"], [b"2", b"two"]]}
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, rows)]

    await sink.run()

    has_mirror = open_table(sink.spark, sink.lake.mirror("shop", "gone")).exists
    assert (sink.mirror(GONE) if has_mirror else []) == []
    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 2]
    assert sink.health.degraded == ""
    assert ("all tables are loaded again" in caplog.text) != was_dropped_before, "then no second dump is needed"
