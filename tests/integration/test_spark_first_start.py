"""The first start of a lake, if something happens between its dump and its first record."""

from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete

from common.spark import leaves_sockets
from databus_core.errors import LakeUnavailable
from databus_spark.changelog import ChangeLog
from databus_spark.folder import Folder
from integration.sink import INSERT, ITEMS, Sink, delete_topic
from integration.sink_peers import describe_table

pytestmark = [pytest.mark.lake, leaves_sockets]

OTHER = describe_table("other", "id int(11)")


async def test_mirrors_of_a_load_that_was_interrupted_and_is_not_continued_are_deleted(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.dump({ITEMS: [[b"1", b"one"]], OTHER: [[b"1"]]})

    def fail(*_: object) -> None:
        raise LakeUnavailable("killed")

    with monkeypatch.context() as patch, pytest.raises(LakeUnavailable, match="killed"):
        patch.setattr(ChangeLog, "start", fail)
        await sink.run()
    sink.dump({ITEMS: [[b"1", b"one"]]})  # meanwhile, shop.other was dropped

    await sink.run()

    assert Folder(sink.spark, str(Path(sink.lake.mirror("shop", "other")).parent)).names() == ["items"]
    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}]


async def test_a_topic_that_was_deleted_after_the_dump_parks_its_table(sink: Sink, admin: AIOKafkaAdminClient) -> None:
    await sink.publisher.send((ITEMS, INSERT, [[b"1", b"one"]]), (OTHER, INSERT, [[b"1"]]))
    sink.dump({ITEMS: [[b"1", b"one"]], OTHER: [[b"1"]]})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]), (OTHER, INSERT, [[b"2"]]))
    await delete_topic(sink, admin, ITEMS)

    await sink.run()

    assert sink.health.degraded == "parked: shop.items"
    assert sink.mirror(OTHER) == [{"id": 1}, {"id": 2}]


async def test_if_kafka_has_deleted_changes_after_the_newest_dump_another_one_is_taken(
    sink: Sink, admin: AIOKafkaAdminClient
) -> None:
    await sink.publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    [topic] = sink.publisher.offsets
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=3)})
    offsets = dict(sink.publisher.offsets)
    rows = [[b"1", b"one"], [b"2", b"two"]]
    newer = sink.dumps.manifest(sink.publisher.position, {ITEMS: rows}, kafka_offsets=offsets)
    sink.dumps.on_request = [newer]

    await sink.run()

    assert [row["id"] for row in sink.mirror(ITEMS)] == [1, 2]
    assert sink.health.degraded == ""
