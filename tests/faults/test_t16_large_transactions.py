"""T16: a large transaction is published completely and once, even if services are killed.

The progress in Kafka does not move until the whole transaction is published.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from common.connections import Execute
from common.pipelines import MakePipeline
from databus_core.kafka_progress import read_progress
from databus_core.settings import Settings
from devstack import Kind, Server
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.mysql_in_slow

_ROWS = 1_000_000
_NUMBERS: dict[Kind, str] = {
    "mariadb": f"SELECT seq, REPEAT('x', 100) FROM seq_1_to_{_ROWS}",
    "mysql": f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_ROWS})"
    f" SELECT /*+ SET_VAR(cte_max_recursion_depth = {_ROWS}) */ i, REPEAT('x', 100) FROM n",
}


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, source: Server, schema: str) -> Pipeline:
    election = {"election": {"renew": "500ms"}}
    return make_pipeline(source, schema, reader=election | {"backlog_limit": 2**20}, publisher=election)


@pytest.fixture
async def partition(pipeline: Pipeline, schema: str) -> TopicPartition:
    """The one partition of the table's topic."""
    topic = f"{pipeline.name}.{schema}.t"
    admin = AIOKafkaAdminClient(bootstrap_servers=pipeline.kafka.url)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1)])
    await admin.close()
    return TopicPartition(topic, 0)


@pytest.fixture
async def uncommitted(pipeline: Pipeline, partition: TopicPartition) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer that reads uncommitted records, too."""
    async with AIOKafkaConsumer(bootstrap_servers=pipeline.kafka.url, group_id=None) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        yield consumer


async def test_t16_a_transaction_is_published_completely_and_once_though_services_are_killed(
    pipeline: Pipeline,
    source: Server,
    schema: str,
    execute: Execute,
    partition: TopicPartition,
    uncommitted: AIOKafkaConsumer,
) -> None:
    settings = Settings(name=pipeline.name, kafka={"bootstrap_servers": [pipeline.kafka.url]})
    await execute("CREATE TABLE t (id INT PRIMARY KEY, text VARCHAR(100))")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    await execute(f"INSERT INTO t {_NUMBERS[source.kind]}")
    for victim in ("publisher", "reader"):
        async with asyncio.timeout(60):
            await uncommitted.getone()  # the transaction is being sent
        await asyncio.to_thread(pipeline.kill, victim)
        progress = await read_progress(settings)
        assert progress is None or progress.transaction == 0, "published before a service was killed: raise _ROWS"
        await uncommitted.seek_to_end(partition)
        pipeline.spawn(victim)

    ids, offsets = [], []
    async with (
        AIOKafkaConsumer(
            bootstrap_servers=pipeline.kafka.url, group_id=None, isolation_level="read_committed"
        ) as consumer,
        asyncio.timeout(120),
    ):
        consumer.assign([partition])
        consumer.seek(partition, 0)
        while len(ids) < _ROWS:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                offsets += [record.offset for record in records]
                ids += [row[0] for record in records for row in json.loads(record.value)["Rows"]]
    assert len(ids) == len(set(ids)) == _ROWS
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), "Kafka committed within the transaction"
    assert (await read_progress(settings)).transaction == 1
