"""A table that cannot follow is parked and loaded again, and records that cannot be used are kept; all others flow."""

from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.records_to_delete import RecordsToDelete
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from common.spark import leaves_sockets
from databus_binlog import ABSENT, Position
from databus_core.errors import FatalError, LakeUnavailable
from databus_core.events import Action, Row
from databus_spark.changelog import ChangeLog
from databus_spark.formats import open_table
from databus_spark.mirror import Mirror
from databus_spark_sink import service, session
from databus_spark_sink.compare.verify import verify
from databus_spark_sink.tables import TableStates
from databus_wire.kafka_records import sequence_text
from integration.sink import ALTER, INSERT, ITEMS, KEY, UPDATE, Sink, delete_topic
from integration.sink_peers import describe_table, on_both_formats

pytestmark = leaves_sockets


@pytest.mark.lake
async def test_a_mirror_that_cannot_be_read_is_behind_and_the_others_go_on(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], other: [[b"1"]]})
    await sink.run()
    open_mirror, damaged = Mirror.__init__, {("shop", "items")}

    def open_undamaged(mirror: Mirror, spark: SparkSession, log: ChangeLog, name: tuple[str, str], *more: Any) -> None:
        if name in damaged:
            raise PySparkException("a file of the mirror is damaged")
        open_mirror(mirror, spark, log, name, *more)

    monkeypatch.setattr(Mirror, "__init__", open_undamaged)
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (other, INSERT, [[b"2"]]))
    with pytest.raises(LakeUnavailable, match=r"not up to date \(behind: shop\.items\)"):
        await sink.run()
    assert sink.mirror(other) == [{"id": 1}, {"id": 2}]

    damaged.clear()
    await sink.run()
    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]


@pytest.mark.lake
async def test_a_table_that_cannot_be_mirrored_is_parked_and_the_others_go_on(sink: Sink) -> None:
    tables = {name: describe_table(name, "id int(11)", "at time") for name in ("retyped", "lost", "odd")}
    retyped = describe_table("retyped", "id int(11)", "at time(3)")
    keyless = describe_table("lost", "id int(11)", "at time", key=())
    unknown = describe_table("odd", "id int(11)", "at time", "more int(11)")
    unseen = describe_table("unseen", "id int(11)")  # neither in the dump nor created since
    altered = describe_table("altered", "id int(11)")  # nor this one, which has no rows in the stream
    sink.dump({ITEMS: [], **{table: [[b"1", b"10:00:00"]] for table in tables.values()}})
    await sink.publisher.send(
        (retyped, ALTER, b"ALTER TABLE retyped MODIFY at time(3)"),
        (retyped, INSERT, [[b"2", b"10:00:00.000"]]),
        (keyless, ALTER, b"ALTER TABLE lost DROP PRIMARY KEY"),
        (keyless, INSERT, [[b"1", b"10:00:00"]]),
        (unknown, INSERT, [[b"2", b"10:00:00", b"3"]]),
        (unseen, INSERT, [[b"7"]]),
        (altered, ALTER, b"ALTER TABLE altered ADD INDEX (id)"),
        (ITEMS, INSERT, [[b"1", b"one"]]),
    )

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}]
    parked = sink.read(sink.lake.tables, "SELECT * FROM t WHERE state = 'parked' ORDER BY \"table\"")
    assert [(row["table"], row["reason"]) for row in parked] == [
        ("altered", "its earlier rows are not in the lake"),
        ("lost", "it has no primary key"),
        ("odd", "rows have columns that no statement explains"),
        ("retyped", "the effect of a statement on its rows is not certain: column at changes from time to time(3)"),
        ("unseen", "its earlier rows are not in the lake"),
    ]
    assert sink.health.degraded == "parked: shop.altered, shop.lost, shop.odd, shop.retyped, shop.unseen"
    assert [row["id"] for row in sink.mirror(tables["retyped"])] == [1], "it stays as it was before the doubt"

    # a backfill with --clean heals it
    await sink.publisher.send((retyped, Action.TRUNCATE, b"TRUNCATE"), (retyped, INSERT, [[b"1", b"10:00:00.000"]]))
    await sink.run()
    assert sink.mirror(retyped) == [{"id": 1, "at": "10:00:00.000"}]
    assert sink.health.degraded == "parked: shop.altered, shop.lost, shop.odd, shop.unseen"

    states = TableStates(sink.spark, sink.lake.tables)
    states.set_patterns(["shop.o*"])
    assert states.out_of_date == [("shop", "odd")], "what is left out of spark.tables needs no attention"


async def test_a_parked_table_is_loaded_again_from_a_new_dump_while_the_others_go_on(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = sink.publisher
    retyped = describe_table("items", "id int(11)", "name int(11)")
    sink.dump({ITEMS: [[b"1", b"1"]]})
    await publisher.send((retyped, ALTER, b"ALTER TABLE items MODIFY name int"), (retyped, INSERT, [[b"2", b"2"]]))
    monkeypatch.setattr(session, "open_session", lambda *_: sink.spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    with pytest.raises(FatalError, match=r"mirrors are parked: shop\.items "):
        await service.run_until_idle(sink.settings, sink.health)
    assert sink.health.degraded == "parked: shop.items"
    sink.use(heal="auto")
    healing = sink.dumps.manifest(publisher.position, {retyped: [[b"1", b"1"], [b"2", b"2"]]})
    sink.dumps.on_request = [healing]
    sink.dumps.requested = ["shop.items"]
    sink.dumps.meanwhile = lambda: publisher.send((retyped, UPDATE, [[b"2", b"2"], [b"2", b"3"]]))

    await service.run_until_idle(sink.settings, sink.health)

    assert sink.mirror(retyped) == [{"id": 1, "name": 1}, {"id": 2, "name": 3}]
    assert sink.health.degraded == ""
    assert [(row["table"], row["state"]) for row in sink.read(sink.lake.tables)] == [("items", "live")]


@pytest.mark.lake
async def test_a_table_with_a_dead_letter_is_loaded_again(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    publisher, other = sink.publisher, describe_table("other", "id int(11)")
    keyless = describe_table("keyless", "id int(11)", key=())
    publisher.position = Position(file="mysql-bin.000900", offset=100)
    await publisher.dead_letter(ITEMS)  # the dump has this change; its position is of another server
    publisher.position = Position(file="mysql-bin.000003", offset=100)
    await publisher.send_progress()
    sink.dump({ITEMS: [[b"1", b"one"]], other: [], keyless: []})
    await publisher.dead_letter(other, output="archive")
    await publisher.dead_letter(other, reason="skipped")
    await publisher.send((other, INSERT, [[b"1"]]))
    sink.use(tables=["shop.items", "shop.other", "shop.key*"])
    await publisher.dead_letter(describe_table("foreign", "id int(11)"))
    await sink.run()
    assert sink.health.degraded == "", "none of these letters is about a change that the lake misses"

    await publisher.dead_letter(ITEMS)
    await publisher.dead_letter(keyless)
    await publisher.send((ITEMS, INSERT, [[b"3", b"three"]]), (other, INSERT, [[b"2"]]))
    await sink.run()

    assert sink.health.degraded == "parked: shop.items, shop.keyless"
    assert "cannot be used: it is a dead letter: its record is too large" in caplog.text
    assert sink.mirror(other) == [{"id": 1}, {"id": 2}]
    sink.use(heal="auto")
    rows: list[Row] = [[b"1", b"one"], [b"2", b"large"], [b"3", b"three"]]
    sink.dumps.requested = ["shop.items"]
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {ITEMS: rows})]

    async def meanwhile() -> None:
        if not sink.dumps.on_request:
            sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {keyless: []})]
        else:
            sink.dumps.requested = ["shop.keyless"]

    sink.dumps.meanwhile = meanwhile
    await sink.run()
    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 2, 3]
    assert sink.health.degraded == ""


@pytest.mark.lake
async def test_all_mirrors_are_loaded_again_with_other_types(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    publisher = sink.publisher
    visits = describe_table("visits", "id int(11)", "day date", "span time(3)", "doc json")
    days = describe_table("days", "day date")
    visit, changed = [b"1", b"0000-00-00", b"-00:00:01.500", b"null"], [b"1", b"2021-00-00", None, b'{"a": 1.50}']
    sink.dump({visits: [visit], days: [[b"0000-00-00"]]})
    await sink.run()
    assert sink.mirror(visits) == [{"id": 1, "day": None, "span": "-00:00:01.500", "doc": "null"}]
    assert "values of shop.visits, column day, are NULL in the lake" in caplog.text
    assert sink.health.degraded == "parked: shop.days"

    is_delta = sink.settings.spark.table_format == "delta"
    types = {
        "zero_dates": "string",
        "time_columns": "microseconds",
        "json_columns": "variant" if is_delta else "string",
    }
    sink.use(heal="auto", types=types)
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {visits: [visit]})]
    with pytest.raises(LakeUnavailable, match=r"shop.visits was made with other settings of spark.types"):
        await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])

    sink.dumps.meanwhile = lambda: publisher.send((visits, UPDATE, [visit, changed]))
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {days: [[b"0000-00-00"]], visits: [visit]})]
    await sink.run()

    assert sink.health.degraded == ""
    assert sink.mirror(days) == [{"day": "0000-00-00"}]
    rows = open_table(sink.spark, sink.lake.mirror("shop", "visits")).read()
    [row] = rows.selectExpr("id", "day", "span", "to_json(doc)" if is_delta else "doc").collect()
    assert tuple(row) == (1, "2021-00-00", None, '{"a":1.5}' if is_delta else '{"a": 1.50}')


@pytest.mark.lake
async def test_a_parked_table_that_is_renamed_is_parked_under_its_new_name(sink: Sink) -> None:
    a, b, c = (describe_table(name, "id int(11)", "at time") for name in ("a", "b", "c"))
    retyped_a, retyped_b = (describe_table(name, "id int(11)", "at time(3)") for name in ("a", "b"))
    sink.dump({a: [[b"1", b"10:00:00"]], b: [[b"2", b"10:00:00"]], c: []})
    await sink.publisher.send(
        (retyped_a, ALTER, b"ALTER TABLE a MODIFY at time(3)"), (c, INSERT, [[b"3", b"10:00:00"]])
    )
    await sink.publisher.statement(b"RENAME TABLE a TO t, b TO a, t TO b", (a, ALTER), (retyped_b, ALTER))
    await sink.publisher.send((a, INSERT, [[b"4", b"10:00:00"]]), (retyped_b, INSERT, [[b"5", b"10:00:00.000"]]))

    await sink.run()

    assert sink.health.degraded == "parked: shop.b"
    assert [row["id"] for row in sink.mirror(a)] == [2, 4]
    assert [row["id"] for row in sink.mirror(c)] == [3]


@on_both_formats
@pytest.mark.lake
async def test_records_that_cannot_be_used_are_put_into_quarantine(sink: Sink) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    await publisher.send_raw(ITEMS, b"", None, sequence=None)
    await publisher.send((ITEMS, INSERT, [[b"3", b"three"]]))
    await sink.run()
    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 2, 3], "nobody doubts a table for a foreign record"

    await publisher.send((ITEMS, UPDATE, [[b"1", ABSENT], [b"2", ABSENT]]))  # type: ignore[list-item]
    await publisher.send_raw(ITEMS, KEY.encode(), b"late", sequence=sequence_text(1, 0))
    await sink.run()

    found = sink.read(sink.lake.quarantine, 'SELECT * FROM t ORDER BY "offset"')
    assert [(row["partition"], row["value"] and row["value"][:9], row["reason"]) for row in found] == [
        (0, None, "it was not written by the publisher: the header databus.sequence is missing"),
        (0, b'{"Table":', "it is not in the databus format"),
        (0, b"late", "it came after newer changes, as a replayed dead letter does"),
    ]
    assert sink.health.degraded == "parked: shop.items"


@pytest.mark.lake
async def test_tables_whose_records_kafka_has_lost_are_parked(sink: Sink, admin: AIOKafkaAdminClient) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], other: []})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (other, INSERT, [[b"1"]]))
    await sink.run()
    await sink.publisher.send((ITEMS, INSERT, [[b"3", b"three"]]), (other, INSERT, [[b"2"]]))
    [topic] = [name for name in sink.publisher.offsets if name.endswith("items")]
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=4)})
    await sink.publisher.send((other, INSERT, [[b"3"]]))

    await sink.run()

    assert [row["id"] for row in sink.mirror(other)] == [1, 2, 3]
    [parked] = sink.read(sink.lake.tables, "SELECT * FROM t WHERE state = 'parked'")
    assert (parked["table"], parked["reason"]) == (
        "items",
        f"Kafka has deleted records of topic {topic} that were not read",
    )


@pytest.mark.lake
async def test_a_table_whose_topic_was_deleted_and_created_again_while_the_sink_was_down_is_parked(
    sink: Sink, admin: AIOKafkaAdminClient
) -> None:
    other = describe_table("other", "id int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]], other: []})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    await sink.publisher.send_progress()
    await sink.run()
    topic = await delete_topic(sink, admin, ITEMS)
    for number in b"3", b"4", b"5":
        await sink.publisher.send((ITEMS, INSERT, [[number, b"more"]]), (other, INSERT, [[number]]))

    await sink.run()

    assert [row["id"] for row in sink.mirror(other)] == [3, 4, 5]
    [parked] = sink.read(sink.lake.tables, "SELECT * FROM t WHERE state = 'parked'")
    assert (parked["table"], parked["reason"]) == ("items", f"topic {topic} was deleted and created again")
    assert len(sink.changes(ITEMS)) == 4, "its first records are not skipped"

    healing = sink.dumps.manifest(sink.publisher.position, {ITEMS: [[b"9", b"nine"]]})
    sink.use(heal="auto")
    sink.dumps.on_request, sink.dumps.requested = [healing], ["shop.items"]
    await sink.run()
    assert [row["id"] for row in sink.mirror(ITEMS)] == [9]
    assert sink.health.degraded == ""


@pytest.mark.lake
async def test_a_table_whose_topic_was_deleted_is_parked_unless_the_sink_knows_that_it_was_dropped(
    sink: Sink, admin: AIOKafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    known, again, unknown = tables = [describe_table(name, "id int(11)") for name in ("known", "again", "unknown")]
    sink.dump({ITEMS: [], **{table: [[b"1"]] for table in tables}})
    drops = [(table, Action.DROP, b"DROP TABLE " + table.name.encode()) for table in (known, again)]
    await sink.publisher.send((ITEMS, INSERT, [[b"0", b"none"]]), (unknown, INSERT, [[b"2"]]), *drops)
    await sink.run()
    await sink.publisher.send((unknown, Action.DROP, b"DROP TABLE unknown"))
    topics = {table.name: await delete_topic(sink, admin, table) for table in tables}
    await admin.create_topics([NewTopic(topics["again"], 1, 1)])
    await sink.publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))

    await sink.run()

    assert [row["id"] for row in sink.mirror(ITEMS)] == [0, 1]
    [parked] = sink.read(sink.lake.tables, "SELECT * FROM t WHERE state = 'parked'")
    reason = f"topic {topics['unknown']} was deleted, maybe with records that were not read"
    assert (parked["table"], parked["reason"]) == ("unknown", reason)

    # all are created again
    await sink.publisher.send(
        (ITEMS, INSERT, [[b"2", b"two"]]),
        *((table, Action.CREATE, b"CREATE TABLE " + table.name.encode()) for table in tables),
        *((table, INSERT, [[b"3"]]) for table in tables),
    )
    await sink.run()
    assert sink.health.degraded == ""
    assert [sink.mirror(table) for table in tables] == [[{"id": 3}]] * 3
    assert caplog.text.count("is parked") == 1
