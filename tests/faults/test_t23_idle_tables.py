"""T23: the captured tables are idle on a busy server. The position moves on, so old binlogs are no longer needed."""

import asyncio

import pytest

from common.connections import Execute, session_on
from common.pipelines import MakePipeline
from common.waiting import eventually
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress
from databus_core.settings import Settings
from devstack import Server
from devstack.pipeline import Pipeline


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, source: Server) -> Pipeline:
    return make_pipeline(source, "nobody_writes_here")


async def test_t23_the_position_moves_on_while_captured_tables_are_idle(
    pipeline: Pipeline, source: Server, execute: Execute
) -> None:
    settings = Settings(name=pipeline.name, kafka={"bootstrap_servers": [pipeline.kafka.url]})
    await execute("CREATE TABLE busy (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(1000))")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    for _ in range(200):
        await execute("INSERT INTO busy (text) VALUES (REPEAT('x', 1000))")
    async with session_on(source) as session:
        reached = await session.current_position()

    async def arrived() -> Progress | None:
        progress = await read_progress(settings)
        position = progress and progress.position
        return progress if position and (position.file, position.offset) >= (reached.file, reached.offset) else None

    progress = await eventually(arrived, seconds=30)
    assert progress
    assert progress.transaction == 0
    assert progress.position
    assert progress.position.gtid_set
