"""DDL on a table while it is loaded: all rows behind it have the table's new columns."""

import asyncio

from common.connections import Execute
from common.pipelines import Consume, MakePipeline, run_until_idle
from databus_core.kafka_table_states import write_backfills
from databus_core.settings import load
from databus_core.table_states import new_backfills
from devstack import Server

_ROWS = 8


async def test_a_column_that_is_added_while_the_next_chunk_waits_for_the_rate_limit(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    for row in range(_ROWS):
        await execute("INSERT INTO t VALUES (%s)", row)
    pipeline = make_pipeline(source, schema, backfill={"rows_per_second": 4})
    await run_until_idle(pipeline)
    await write_backfills(load(pipeline.config), new_backfills([(schema, "t")]))
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    before = await consumer.until(2)
    await execute("ALTER TABLE t ADD COLUMN v VARCHAR(9) NOT NULL DEFAULT 'new'")
    found = before + await consumer.until(_ROWS - 1)
    altered = next(place for place, message in enumerate(found) if message["Action"] == "alter")
    rows = [[b"%d" % row, b"new"] for row in range(_ROWS)]
    assert [row for message in found[:altered] for row in message["Rows"]] == [row[:1] for row in rows[:altered]]
    assert [row for message in found[altered + 1 :] for row in message["Rows"]] == rows[altered:]
