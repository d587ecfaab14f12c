"""The sink's main path: open a Spark session → load a dump → follow Kafka, batch by batch."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_core import kafka_client, names
from databus_core.change_topics import ChangeTopics
from databus_core.dump_client import DumpApi
from databus_core.errors import FatalError, KafkaUnavailable, LakeUnavailable
from databus_core.events import first_names, full_name
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import sink as metrics
from databus_core.progress import Progress, Routes
from databus_core.routes import fingerprint
from databus_core.runtime import Health, uninterrupted
from databus_core.settings import Settings
from databus_spark.changelog import LogState
from databus_spark.layout import Layout
from databus_spark.records import read_records
from databus_spark.types import type_options
from databus_spark_sink import session
from databus_spark_sink.compare.scheduled import Verification
from databus_spark_sink.lake import Lake
from databus_spark_sink.loads import bootstrap
from databus_spark_sink.loads.healing import Healing
from databus_spark_sink.periodic import Periodic
from databus_spark_sink.stream.cuts import Batch, Cuts, require_same_rules
from databus_spark_sink.stream.lag import Lag
from databus_spark_sink.stream.starts import Loss
from databus_spark_sink.tables import TableStates
from databus_spark_sink.upkeep.scheduled import Maintenance

log = get_logger(__name__)

#: pause before it is looked again for a new transaction, while there is none
_IDLE_SECONDS = 0.1


async def run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    """Keep the lake up to date; with `until_idle`, return when it has everything that is in Kafka now.

    Raises FatalError then, if tables are parked.
    """
    layout = Layout(settings.spark.lake)
    health.down("starting Spark")
    spark = await asyncio.to_thread(session.open_session, settings.spark, layout)
    try:
        await keep_up_to_date(settings, health, spark, layout, until_idle=until_idle)
        if until_idle:
            await asyncio.to_thread(_require_none_parked, spark, layout)
    finally:
        await asyncio.shield(asyncio.to_thread(spark.stop))


def _require_none_parked(spark: SparkSession, layout: Layout) -> None:
    with _reporting(f"the lake in {layout.root} cannot be read"):
        parked = TableStates(spark, layout.tables).out_of_date
    if parked:
        tables = first_names([full_name(*name) for name in parked])
        raise FatalError(
            f"everything in Kafka is in the lake, but mirrors are parked: {tables} (the reasons are in "
            f"{layout.tables}; databus-spark-sink resync loads tables again)"
        )


async def keep_up_to_date(
    settings: Settings, health: Health, spark: SparkSession, layout: Layout, *, until_idle: bool
) -> None:
    """Do the work of `run` in an open session."""
    lag = Lag()
    health.down("opening the lake")
    topics = ChangeTopics(settings, settings.spark.tables)
    types = type_options(settings.spark.types)
    with _reporting(f"the lake in {layout.root} cannot be opened"):
        rules = settings.publisher.rules
        opened = await asyncio.to_thread(Lake, spark, layout, settings.spark.tables, topics.may_have, types, rules)
    with closing(opened) as lake:
        progress = await read_progress(settings) or Progress()
        require_same_rules(settings, progress)
        if not lake.is_loaded:
            with _reporting(f"a dump cannot be loaded into {layout.root}"):
                await bootstrap.load(settings, health, spark, lake)
        health.down("starting to read Kafka")
        await topics.beginnings()  # raises what is wrong with the connection
        routes = progress.routes or Routes(fingerprint(settings.publisher.rules))
        with _reporting(f"the lake in {layout.root} cannot be written"):
            await asyncio.to_thread(lake.follow_rules, routes)
        async with (
            kafka_client.consumer(settings.kafka, "read_uncommitted") as written,
            kafka_client.consumer(settings.kafka) as committed,
            AsyncExitStack() as stack,
        ):
            cuts, healing = Cuts(settings, written, committed, routes.after), Healing(settings, spark, lake)
            stack.push_async_callback(healing.close)
            maintenance = Maintenance(settings, spark, lake)
            background = (
                Periodic(settings.spark.maintain.interval, maintenance.run),
                Periodic(settings.spark.verify, Verification(settings, spark, lake).run),
            )
            for periodic in background:
                stack.push_async_callback(periodic.close)
            while True:
                await maintenance.step()
                for periodic in background:
                    periodic.step()
                begin, looked = time.monotonic(), time.time()
                batch = await cuts.next(lake.state)
                lag.found(batch)
                if batch:
                    await uninterrupted(asyncio.to_thread(_write, spark, settings, lake, batch))
                    _set_metrics(lake.state)
                elif lake.is_behind:
                    await uninterrupted(asyncio.to_thread(_catch_up, lake))
                lag.written(batch, looked, is_behind=lake.is_behind)
                await healing.step()  # after the batch: a dump must not be older than records that the batch skips
                health.up()
                health.degraded = "; ".join(filter(None, (lake.degraded, healing.degraded)))
                if until_idle and not batch and not healing.is_pending:
                    if lake.is_behind:
                        raise LakeUnavailable(f"the lake is not up to date ({lake.degraded})")
                    return
                pause = settings.spark.trigger if batch or lake.is_behind else _IDLE_SECONDS
                if not (batch and until_idle):
                    await asyncio.sleep(max(0.0, begin + pause - time.monotonic()))


def _write(spark: SparkSession, settings: Settings, lake: Lake, batch: Batch) -> None:
    letters = names.dead_letter_topic(settings.name)
    with (
        metrics.STEP_SECONDS.labels("batch").time(),
        _reporting(f"the change log in {lake.layout.root} cannot be written"),
    ):
        for topic, loss in batch.lost.items():
            last = batch.published if loss.last is None else loss.last
            if topic == letters:
                lake.lose_dead_letters(topic, loss.reason, last)
                continue
            # Topics are deleted after their tables were dropped: that must not park these tables.
            if not lake.park_tables_of(topic, loss.reason, last, with_dropped=not loss.was_deleted):
                _load_patterns_of(topic, loss, settings, lake)
        if batch.reset:
            lake.park_after_reset(batch.reset)
        read = partial(read_records, spark, settings.kafka, ends=batch.end.offsets)
        records, dead_letters = read(batch.starts | {letters: {}}), read({letters: batch.starts.get(letters, {})})
        lake.apply(records, batch.end, dead_letters, note=bool(batch.reset or batch.lost))


def _load_patterns_of(topic: str, loss: Loss, settings: Settings, lake: Lake) -> None:
    """Let the tables be loaded that a topic may have records of, of which the lake knows none."""
    topics = ChangeTopics(settings, settings.spark.tables)
    patterns = [each for each in topics.patterns_of(topic) if each in lake.tables.loaded]
    if patterns:  # others are loaded anyway
        text = f"{loss.reason}: tables of {first_names(patterns)} that the lake lacks are loaded from a dump"
        log.warning(LogEvent.RECORDS_MISSING, text, topic=topic)
        lake.tables.request_loads(patterns)


def _catch_up(lake: Lake) -> None:
    with _reporting(f"the lake in {lake.layout.root} cannot be read"):
        lake.catch_up()


@contextmanager
def _reporting(failure: str) -> Iterator[None]:
    """Raise errors of Spark as KafkaUnavailable, or as LakeUnavailable with a text."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if "org.apache.kafka.common.errors" in str(error):
            raise KafkaUnavailable("Spark cannot read from Kafka (check kafka.bootstrap_servers)") from error
        raise LakeUnavailable(failure) from error


def _set_metrics(state: LogState) -> None:
    for topic, partitions in state.offsets.items():
        for partition, offset in partitions.items():
            metrics.OFFSET.labels(topic, partition).set(offset)


async def run_until_idle(settings: Settings, health: Health) -> None:
    """Bring the lake up to date with what is in Kafka now, and return."""
    await run(settings, health, until_idle=True)


async def check(settings: Settings, _: Health) -> None:
    """Check Spark's properties, that the connectors' jars are present and that Kafka and dump-api can be reached."""
    session.configuration(settings.spark, Layout(settings.spark.lake))
    await ChangeTopics(settings, settings.spark.tables).beginnings()
    async with DumpApi.of(settings.dumps) as api:
        await api.dumps()
