"""Compare the mirrors of a lake with their tables in the database, and report each table that cannot be compared."""

import asyncio
import sys
from collections.abc import AsyncIterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.dump_client import DumpApi
from databus_core.errors import DatabusError, DumpRefused, InvalidSettings
from databus_core.settings import Settings
from databus_core.table_filter import TableFilter
from databus_spark.changelog import ChangeLog
from databus_spark.dump_files import Say, download
from databus_spark.folder import Folder
from databus_spark.layout import Layout
from databus_spark_sink.compare import verdicts
from databus_spark_sink.compare.comparison import Comparison, open_mirror
from databus_spark_sink.compare.verdicts import Verdict
from databus_spark_sink.loads.dumps import request, wait_for_pipeline
from databus_spark_sink.tables import TableStates


async def verify(settings: Settings, spark: SparkSession, layout: Layout, tables: list[str]) -> bool:
    """Compare the tables that match these patterns; print a line for each; return whether all mirrors are equal.

    Raises InvalidSettings if there is no such table, and at the end the first error of a table.
    """
    found = []
    async for verdict in judged(settings, spark, layout, tables, _say):
        sys.stdout.write(f"{verdict.line}\n")
        found.append(verdict)
    if not found:
        raise InvalidSettings(f"{settings.spark.lake} has no mirror of {', '.join(tables)}: check spark.tables")
    for verdict in found:
        if verdict.error:
            raise verdict.error
    return all(verdict.is_equal for verdict in found)


async def judged(
    settings: Settings, spark: SparkSession, layout: Layout, tables: list[str], say: Say
) -> AsyncIterator[Verdict]:
    """Take a dump of the tables that match these patterns, and judge each of them, and each that only the lake has."""
    if not ChangeLog(spark, layout.changes).exists:
        raise InvalidSettings(f"{layout.root} has no change log: check spark.lake, and start the sink")
    async with DumpApi.of(settings.dumps) as api:
        try:
            manifest, transaction = await request(settings, api, tables)
        except DumpRefused:  # a pattern matches no table
            if len(tables) > 1:
                for each in tables:
                    async for verdict in judged(settings, spark, layout, [each], say):
                        yield verdict
                return
            if not (gone := await asyncio.to_thread(_judge_without_dump, settings, spark, layout, tables)):
                raise
            for verdict in gone:
                yield verdict
            return
        async with api.leased(manifest.id):
            dump = await wait_for_pipeline(settings, say, manifest, Folder(spark, layout.downloads), transaction)
            comparison = Comparison(settings, spark, layout, dump)
            await asyncio.to_thread(comparison.wait_for_log)
            in_lake = await asyncio.to_thread(_in_lake, settings, spark, layout, tables)
            for name in sorted({*comparison.tables, *in_lake}):
                yield await _judge(api, say, comparison, name)


async def _judge(api: DumpApi, say: Say, comparison: Comparison, name: TableName) -> Verdict:
    """Judge a table; its files of the dump are in the lake meanwhile."""
    dump = comparison.dump
    try:
        if obstacle := await asyncio.to_thread(comparison.obstacle, name):
            return obstacle
        try:
            await download(api, say, dump.manifest, [comparison.tables[name]], dump.folder)
            return await asyncio.to_thread(comparison.compare, name)
        finally:
            await asyncio.to_thread(dump.folder.delete)
    except (DatabusError, PySparkException, Py4JError) as error:
        return verdicts.failed(name, error)


def _in_lake(settings: Settings, spark: SparkSession, layout: Layout, tables: list[str]) -> list[TableName]:
    """Return the lake's tables that match these patterns, and are parked, damaged or were not dropped."""
    states, chosen, kept = TableStates(spark, layout.tables), TableFilter(tables), TableFilter(settings.spark.tables)

    def is_there(name: TableName) -> bool:
        try:
            return name in states.parked or open_mirror(settings, spark, layout, name).definition is not None
        except (PySparkException, Py4JError):
            return True

    return [name for name in states.known if chosen.matches(*name) and kept.matches(*name) and is_there(name)]


def _judge_without_dump(settings: Settings, spark: SparkSession, layout: Layout, tables: list[str]) -> list[Verdict]:
    """Judge the lake's tables that match these patterns, which match no table of the database."""
    parked = TableStates(spark, layout.tables).parked

    def judge(name: TableName) -> Verdict:
        try:
            rows = open_mirror(settings, spark, layout, name).rows()[0].count()
        except (PySparkException, Py4JError) as error:
            return verdicts.failed(name, error)
        return verdicts.gone(name, rows)

    found = _in_lake(settings, spark, layout, tables)
    return [verdicts.parked(name, parked[name]) if name in parked else judge(name) for name in found]


def _say(step: str) -> None:
    sys.stderr.write(f"{step}\n")
