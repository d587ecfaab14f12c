"""T30: the progress in Kafka is damaged. The publisher ends with an error; it never starts afresh."""

import asyncio
import secrets

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.records_to_delete import RecordsToDelete

from databus.names import progress_topic
from databus.progress import Progress, encode_progress
from databus_binlog import Position
from devstack.pipeline import Pipeline
from support import MakePipeline

_GOOD = encode_progress(Progress(Position("", "binlog.000001", 4), 7))


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, mariadb: object) -> Pipeline:
    return make_pipeline(mariadb, "shop")


async def publisher_refuses(pipeline: Pipeline) -> str:
    """Start the publisher and give the last line it writes before it ends."""
    pipeline.spawn("publisher")
    await asyncio.to_thread(pipeline.wait_ended, "publisher", 30)
    log = pipeline.log("publisher").read_text()
    assert "Traceback" not in log
    assert "generation opened" not in log
    return log.splitlines()[-1]


async def write(pipeline: Pipeline, *records: bytes | None) -> None:
    """Let the pipeline's progress be these records."""
    topic = progress_topic(pipeline.name)
    admin = AIOKafkaAdminClient(bootstrap_servers=pipeline.kafka.url)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=pipeline.kafka.url) as producer:
        for record in records:
            await producer.send_and_wait(topic, record, key=pipeline.name.encode(), partition=0)


@pytest.mark.parametrize(
    "damaged",
    [_GOOD[:-1], _GOOD[: len(_GOOD) // 2], b"", b"null", b"{}", secrets.token_bytes(40), None],
    ids=["cut off", "cut in half", "empty", "null", "no content", "noise", "tombstone"],
)
@pytest.mark.parametrize("earlier", [(), (_GOOD,)], ids=["alone", "behind a good one"])
async def test_t30_a_damaged_progress_is_an_error(
    pipeline: Pipeline, damaged: bytes | None, earlier: tuple[bytes, ...]
) -> None:
    await write(pipeline, *earlier, damaged)
    assert f"the progress record in {progress_topic(pipeline.name)}" in await publisher_refuses(pipeline)


async def test_t30_a_progress_that_was_deleted_is_an_error(pipeline: Pipeline) -> None:
    await write(pipeline, _GOOD)
    admin = AIOKafkaAdminClient(bootstrap_servers=pipeline.kafka.url)
    await admin.start()
    await admin.delete_records({TopicPartition(progress_topic(pipeline.name), 0): RecordsToDelete(before_offset=1)})
    await admin.close()
    assert f"the progress record in {progress_topic(pipeline.name)}" in await publisher_refuses(pipeline)
