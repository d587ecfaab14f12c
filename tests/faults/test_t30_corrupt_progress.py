"""T30: the progress in Kafka is damaged. That is an error; it is never read as "start over"."""

import asyncio
import secrets

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.records_to_delete import RecordsToDelete

from common.pipelines import MakePipeline
from databus_binlog import Position
from databus_cli.__main__ import main
from databus_core.errors import ProgressCorrupt
from databus_core.kafka_progress import read_progress
from databus_core.names import progress_topic
from databus_core.progress import Progress, encode_progress
from databus_core.settings import Settings
from devstack import Server

_GOOD = encode_progress(Progress(Position("", "binlog.000001", 4), 7))


@pytest.fixture
def settings(kafka: Server) -> Settings:
    return Settings(name=f"p{secrets.token_hex(4)}", kafka={"bootstrap_servers": [kafka.url]})


async def write(settings: Settings, *records: bytes | None, policy: str = "compact") -> None:
    """Create the pipeline's progress topic, with these records."""
    (server,), topic = settings.kafka.bootstrap_servers, progress_topic(settings.name)
    admin = AIOKafkaAdminClient(bootstrap_servers=server)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": policy})])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=server) as producer:
        for record in records:
            await producer.send_and_wait(topic, record, key=settings.name.encode(), partition=0)


@pytest.mark.parametrize(
    "damaged",
    [_GOOD[:-1], _GOOD[: len(_GOOD) // 2], b"", b"null", b"{}", b"\xff\x00\x9c", None],
    ids=["cut off", "cut in half", "empty", "null", "no content", "noise", "tombstone"],
)
@pytest.mark.parametrize("earlier", [(), (_GOOD,)], ids=["alone", "behind a good one"])
async def test_t30_a_damaged_progress_is_an_error(
    settings: Settings, damaged: bytes | None, earlier: tuple[bytes, ...]
) -> None:
    await write(settings, *earlier, damaged)
    with pytest.raises(ProgressCorrupt, match=f"topic {progress_topic(settings.name)}, offset {len(earlier)}: "):
        await read_progress(settings, to_end=True)


async def test_t30_a_progress_that_was_deleted_is_an_error(settings: Settings, kafka: Server) -> None:
    await write(settings, _GOOD, policy="delete")
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    await admin.delete_records({TopicPartition(progress_topic(settings.name), 0): RecordsToDelete(before_offset=1)})
    await admin.close()
    with pytest.raises(ProgressCorrupt, match="were deleted"):
        await read_progress(settings, to_end=True)


async def test_t30_the_publisher_ends_and_says_what_to_do(make_pipeline: MakePipeline, mariadb: Server) -> None:
    pipeline = make_pipeline(mariadb, "shop")
    await write(Settings(name=pipeline.name, kafka={"bootstrap_servers": [pipeline.kafka.url]}), _GOOD[:-1])
    pipeline.spawn("publisher")
    await asyncio.to_thread(pipeline.wait_ended, "publisher", 30)
    log = pipeline.log("publisher").read_text()
    assert " generation_opened: " not in log
    assert "Traceback" not in log
    assert "run `databus pipeline reset" in log.splitlines()[-1]
    assert await asyncio.to_thread(main, ["pipeline", "reset", "--yes", "--config", str(pipeline.config)]) == 0
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
