"""Compare mirrors with their tables in the database: as of one transaction, while the sink and the database go on.

A new dump is loaded beside the mirror, and what the change log has after the dump is added to it, up to the mirror's
transaction. So both must have the same rows.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator

from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import InvalidSettings, LakeUnavailable
from databus.events import Table
from databus.settings import Settings
from databus_spark.changelog import ChangeLog, LogState
from databus_spark.compare import Differences, differences
from databus_spark.definitions import encode_definition, key_columns
from databus_spark.dump_files import Say, read_rows
from databus_spark.folder import Folder
from databus_spark.formats import open_table
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import DumpBase, MirrorState
from databus_spark.types import TypeOptions, type_options
from databus_spark_sink.dumps import PassedDump, take

_POLL_SECONDS = 0.5
#: how long the sink may take to get what the database has
_TIMEOUT_SECONDS = 300


async def verify(settings: Settings, spark: SparkSession, layout: Layout, tables: list[str]) -> bool:
    """Compare the mirrors of the tables that match these patterns; print a line for each; return whether all are equal.

    Raises InvalidSettings if the lake has no mirror of such a table.
    """
    equal = []
    async for table, found in compared(settings, spark, layout, tables, _say):
        sys.stdout.write(f"{table.full_name}: {_describe(found)}\n")
        equal.append(found.equal)
    if not equal:
        raise InvalidSettings(f"{settings.spark.lake} has no mirror of {', '.join(tables)}: check spark.tables")
    return all(equal)


async def compared(
    settings: Settings, spark: SparkSession, layout: Layout, tables: list[str], say: Say
) -> AsyncIterator[tuple[Table, Differences]]:
    """Take a dump of the tables that match these patterns, and compare each that has a mirror."""
    async with DumpApi(settings.dumps.url) as api:
        dump = await take(settings, say, api, tables, Folder(spark, layout.downloads))
    types = type_options(settings.spark.types)
    try:
        for table in dump.tables:
            if open_table(spark, _path(layout, table)).exists:
                yield table, await asyncio.to_thread(compare, spark, layout, dump, table, types)
    finally:
        await asyncio.to_thread(dump.folder.delete)


def compare(spark: SparkSession, layout: Layout, dump: PassedDump, table: Table, types: TypeOptions) -> Differences:
    """Compare a mirror with a dump, after both are as of the same transaction."""
    name = (table.schema, table.name)
    log = ChangeLog(spark, layout.changes)
    mirror = Mirror(spark, log, name, _path(layout, table), types)
    rows, state = mirror.rows()
    if state.types != types:
        raise LakeUnavailable(
            f"the mirror of {table.full_name} was made with other settings of spark.types: "
            "start the sink with these, and wait until it has loaded the mirror again"
        )
    end = time.monotonic() + _TIMEOUT_SECONDS
    while (last := _covered(log.state(), dump.base)) is None or mirror.changes(last).images:
        if time.monotonic() > end:
            raise LakeUnavailable(f"the mirror of {table.full_name} does not get what the database has: is it parked?")
        time.sleep(_POLL_SECONDS)  # until the sink has what the dump has
        mirror = Mirror(spark, log, name, _path(layout, table), types)
        rows, state = mirror.rows()
    last = max(state.transaction, last)
    folder = Folder(spark, layout.downloads).inside(f"{dump.manifest.id}.expected")
    expected = Mirror(spark, log, name, folder.path, types)
    try:
        begin = MirrorState(dump.transaction, encode_definition(table), dump.base)
        expected.load(read_rows(spark, dump.manifest, table, dump.folder, types), table, begin)
        expected.advance(expected.changes(last), last)
        return differences(expected.rows()[0], rows, key_columns(table))
    finally:
        folder.delete()


def _covered(state: LogState, base: DumpBase) -> int | None:
    """Return the transaction up to which a change log has all changes that a dump has; None if it lacks some.

    While the lake's tables are quiet, the sink only notes in memory which transactions of other tables it has passed.
    Then the offsets tell.
    """
    if state.transaction >= base.until:
        return base.until
    ends = [(topic, partition, end) for topic, each in base.passed.items() for partition, end in each.items()]
    has_all = all(state.offsets.get(topic, {}).get(partition, 0) >= end for topic, partition, end in ends)
    return state.transaction if has_all else None


def _path(layout: Layout, table: Table) -> str:
    return layout.mirror(table.schema, table.name)


def _describe(found: Differences) -> str:
    if found.equal:
        return f"equal, {found.rows:,} rows"
    return f"DIFFERS: {found.counts}; for instance {'; '.join(found.examples)}"


def _say(step: str) -> None:
    sys.stderr.write(f"{step}\n")
