"""A backfill that is cancelled parks its table exactly if it has emptied the table for consumers."""

import pytest
from msgspec.structs import replace

from common.connections import Execute
from common.pipelines import MakePipeline, run_until_idle
from databus_core import kafka_client, names
from databus_core.kafka_table_states import read_states
from databus_core.settings import Settings, load
from databus_core.table_states import (
    Backfill,
    BackfillProgress,
    TableDoubt,
    TableStates,
    backfill_key,
    doubt_key,
    encode,
    new_backfills,
    progress_key,
)
from devstack import Server
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.mysql_in_slow


async def cancelled(
    settings: Settings, backfill: Backfill, progress: BackfillProgress, doubt: TableDoubt | None = None
) -> None:
    """Write that a backfill has come this far, and is to be cancelled."""
    records = {
        progress_key(backfill.id): encode(progress),
        backfill_key(backfill.id): encode(replace(backfill, wanted="cancel")),
    }
    if doubt:
        records[doubt_key(*backfill.name)] = encode(doubt)
    async with kafka_client.producer(settings.kafka) as producer:
        for key, value in records.items():
            await producer.send(names.table_states_topic(settings.name), value, key, partition=0)
        await producer.flush()


async def after(pipeline: Pipeline, settings: Settings, backfill: Backfill, *, in_doubt: bool = True) -> TableStates:
    await run_until_idle(pipeline, backfill.full_name if in_doubt else "")
    states, _ = await read_states(settings)
    assert states.state(backfill.id) == "cancelled"
    return states


@pytest.mark.parametrize("has_emptied", [True, False])
async def test_only_a_table_that_was_emptied_is_parked(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, *, has_emptied: bool
) -> None:
    await execute("CREATE TABLE t (id INT)")
    pipeline = make_pipeline(source, schema)
    settings = load(pipeline.config)
    await run_until_idle(pipeline)
    [backfill] = new_backfills([(schema, "t")], clean=True)
    await cancelled(settings, backfill, BackfillProgress(state="running", has_emptied=has_emptied))
    states = await after(pipeline, settings, backfill, in_doubt=has_emptied)
    assert [doubt.state for doubt in states.doubts.values()] == ["parked"] * has_emptied


async def test_a_table_that_was_emptied_because_it_was_parked_is_parked_again(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema)
    settings = load(pipeline.config)
    await run_until_idle(pipeline)
    [backfill] = new_backfills([(schema, "t")])
    doubt = TableDoubt(
        state="filling", reason="rollback", text="", file="f.1", offset=4, since_us=1, backfill=backfill.id
    )
    await cancelled(settings, backfill, BackfillProgress(state="running", has_emptied=True), doubt)
    states = await after(pipeline, settings, backfill)
    assert states.doubts[schema, "t"].state == "parked"
