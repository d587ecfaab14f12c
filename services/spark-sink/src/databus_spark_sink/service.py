"""The sink's main path: open a Spark session → load a dump → stream from Kafka."""

import asyncio

from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import KafkaUnavailable
from databus.runtime import Health
from databus.settings import Settings
from databus_spark_sink import bootstrap, offsets, session, stream
from databus_spark_sink.batch import LakeWriter
from databus_spark_sink.lake import LakeLayout


async def run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    """Keep the lake up to date; with `until_idle`, return when it has everything that is in Kafka now."""
    layout = LakeLayout(settings.spark.lake)
    health.down("starting Spark")
    spark = await asyncio.to_thread(session.open_session, settings.spark, layout)
    try:
        await keep_up_to_date(settings, health, spark, layout, until_idle=until_idle)
    finally:
        await asyncio.shield(asyncio.to_thread(spark.stop))


async def keep_up_to_date(
    settings: Settings, health: Health, spark: SparkSession, layout: LakeLayout, *, until_idle: bool
) -> None:
    """Do the work of `run` in an open session."""
    dump = await bootstrap.ensure_loaded(settings, health, spark, layout)
    health.down("starting to read Kafka")
    starts = await offsets.starting_offsets(settings, layout, dump.manifest)
    writer = LakeWriter(settings, layout, dump)
    query = await asyncio.to_thread(stream.start, spark, settings, layout, writer, starts, until_idle=until_idle)
    try:
        await stream.follow(query, writer, health)
    except KafkaUnavailable:
        await offsets.check_kafka(settings)  # raises the reason if Kafka refuses access: Spark's text is vague
        raise


async def run_until_idle(settings: Settings, health: Health) -> None:
    """Bring the lake up to date with what is in Kafka now, and return."""
    await run(settings, health, until_idle=True)


async def check(settings: Settings, _: Health) -> None:
    """Check that the connectors' jars are present and that Kafka and dump-api can be reached."""
    session.jars(settings.spark.jars)
    await offsets.check_kafka(settings)
    async with DumpApi(settings.dumps.url) as api:
        await api.dumps()
