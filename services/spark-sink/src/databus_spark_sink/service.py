"""The sink's main path: session → bootstrap from a dump → stream from Kafka."""

import asyncio

from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.runtime import Health
from databus.settings import Settings
from databus_spark_sink import bootstrap, offsets, session, stream
from databus_spark_sink.batch import Batches
from databus_spark_sink.lake import Lake


async def run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    """Keep the lake up to date; with `until_idle` only until it has what Kafka holds now."""
    place = Lake(settings.spark.lake)
    spark = await asyncio.to_thread(session.open_session, settings.spark, place)
    try:
        await keep(settings, health, spark, place, until_idle=until_idle)
    finally:
        await asyncio.shield(asyncio.to_thread(spark.stop))


async def keep(settings: Settings, health: Health, spark: SparkSession, place: Lake, *, until_idle: bool) -> None:
    """Do the work of `run` in a session that is open."""
    beginning = await bootstrap.ensure(settings, spark, place)
    start = await offsets.starting_offsets(settings, place, beginning.manifest)
    batches = Batches(settings, place, beginning)
    query = await asyncio.to_thread(stream.start, spark, settings, place, batches, start, until_idle=until_idle)
    await stream.follow(query, batches, health)


async def run_until_idle(settings: Settings, health: Health) -> None:
    """Bring the lake up to what Kafka holds now."""
    await run(settings, health, until_idle=True)


async def check(settings: Settings, _: Health) -> None:
    """Look for the jars, connect to Kafka and dump-api."""
    session.jars(settings.spark.jars)
    await offsets.ping(settings)
    async with DumpApi(settings.dumps.url) as api:
        await api.dumps()
