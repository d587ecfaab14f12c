"""Whether Kafka still has all changes after a start, shown on a topic of which the first records were deleted."""

import secrets
import time

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from common.pipelines import Consume
from databus.offsets import ends_of, offsets_at, require_kept
from databus.source import Source
from databus_core.change_topics import ChangeTopics
from databus_core.errors import ChangesLost
from databus_core.names import SEQUENCE_HEADER
from databus_core.settings import Settings
from devstack import Server

pytestmark = pytest.mark.mysql_in_slow


@pytest.mark.parametrize(
    ("settings", "after", "is_lost"),
    [
        ({"retention.bytes": "1000000"}, 7, False),
        ({"retention.bytes": "1000000"}, 6, True),
        ({"retention.ms": "10000"}, 6, True),
        ({"retention.ms": "-1"}, 6, False),  # Kafka has not deleted them by itself
    ],
)
async def test_what_kafka_may_have_deleted_is_missing(
    kafka: Server, changes: Consume, settings: dict[str, str], after: int, is_lost: bool
) -> None:
    name = f"p{secrets.token_hex(4)}"
    topic = f"{name}.shop.t"
    await changes(topic, **settings)
    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
        for transaction in (5, 6, 7):
            headers = [(SEQUENCE_HEADER, f"{transaction:016d}-0000000000".encode())]
            await producer.send_and_wait(topic, b"{}", partition=0, headers=headers)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=2)})
    await admin.close()

    pipeline = Settings(name=name, kafka={"bootstrap_servers": [kafka.url]})
    source = Source(pipeline, None, ["shop.*"], ChangeTopics(pipeline, ["shop.*"]))  # type: ignore[arg-type]
    since_ms = int((time.time() - 60) * 1000)
    ends = await ends_of(source)
    starts = await offsets_at(source, since_ms, ends)
    assert (starts, ends) == ({topic: {0: 2}}, {topic: {0: 3}})
    if is_lost:
        with pytest.raises(ChangesLost, match=rf"topic {topic}, partition 0: Kafka may have deleted changes after the"):
            await require_kept(source, starts, ends, after, since_ms)
    else:
        await require_kept(source, starts, ends, after, since_ms)
