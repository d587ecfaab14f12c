"""Dumps: fetch the files of one, read them, and load them into mirrors."""

import asyncio
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from databus_binlog import Position
from databus_changes.tables import TableName
from databus_core.change_topics import ChangeTopics
from databus_core.definitions import encode_definition
from databus_core.dump_client import DumpApi
from databus_core.errors import DumpUnusable, LakeUnavailable
from databus_core.events import Table
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import DumpFile, Manifest
from databus_core.pipeline_passed import is_from_pipeline_host, wait_until_passed
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.table_filter import TableFilter
from databus_core.usable_dumps import require_rules
from databus_spark.dump_files import Say, download, files_of, read_rows
from databus_spark.folder import Folder
from databus_spark.mirror_state import DumpBase, MirrorState
from databus_spark_sink.lake import Lake

log = get_logger(__name__)


@dataclass(frozen=True)
class ReadyDump:
    """A dump whose position the pipeline has passed."""

    manifest: Manifest
    base: DumpBase
    #: its tables that belong to the lake
    tables: Sequence[Table]
    #: where its files are in the lake, once they are downloaded
    folder: Folder
    #: ordinal of a transaction; it and all before it are in the dump
    transaction: int

    def files(self, table: Table) -> list[DumpFile]:
        """List the files that a table is loaded from. Raises DumpUnusable if the table's name is not unique."""
        return files_of(self.manifest, table)

    def state(self, table: Table) -> MirrorState:
        """Return the state of a mirror that has the table's rows."""
        return MirrorState(self.transaction, encode_definition(table), self.base)


async def request(settings: Settings, api: DumpApi, tables: list[str]) -> tuple[Manifest, int]:
    """Request a dump of these tables; return it, and the ordinal of a transaction: the dump has it and all before."""
    progress = await read_progress(settings) or Progress()
    manifest = await api.take(tables)
    require_rules(settings, manifest)
    if not is_from_pipeline_host(manifest, progress):
        raise DumpUnusable(f"the pipeline failed over to another server before dump {manifest.id}: request a new dump")
    return manifest, progress.transaction


async def take(
    settings: Settings,
    say: Say,
    api: DumpApi,
    tables: list[str],
    downloads: Folder,
    known: Set[TableName],
) -> ReadyDump:
    """Request a dump of these tables, download it into the lake, and wait until the pipeline has passed its position.

    Tables that are already `known` are not downloaded. After an error, the dump's files are deleted.
    """
    manifest, transaction = await request(settings, api, tables)
    kept = [table for table in _kept(settings, manifest) if (table.schema, table.name) not in known]
    mirrored = [table for table in kept if table.primary_key]
    folder = downloads.inside(manifest.id)
    try:
        async with api.leased(manifest.id):
            await download(api, say, manifest, mirrored, folder)
        return replace(await wait_for_pipeline(settings, say, manifest, downloads, transaction), tables=kept)
    except BaseException:
        with suppress(LakeUnavailable):
            await asyncio.to_thread(folder.delete)
        raise


async def wait_for_pipeline(
    settings: Settings, say: Say, manifest: Manifest, downloads: Folder, transaction: int = -1
) -> ReadyDump:
    """Wait until the pipeline has passed a dump's position.

    The dump is known to have `transaction` and all before it.
    """
    say(f"waiting until the pipeline has passed the position of dump {manifest.id}")
    moment = await wait_until_passed(settings, manifest, ChangeTopics(settings, settings.spark.tables))
    position = manifest.position or Position()  # without one, the pipeline cannot pass it
    base = DumpBase(manifest.id, position.file, position.offset, moment.transaction, moment.offsets)
    return ReadyDump(manifest, base, _kept(settings, manifest), downloads.inside(manifest.id), transaction)


def load_mirror(spark: SparkSession, lake: Lake, dump: ReadyDump, table: Table) -> None:
    """Replace a mirror by the rows of a dump that is downloaded, in one commit, and add what is newer."""
    name = (table.schema, table.name)
    parked = lake.tables.parked.get(name)
    if not has_mirror(table):
        if parked and lake.mirror(name).definition:
            lake.tables.park(name, "it has no primary key", parked.transaction, heals=False)
        else:  # it needs no mirror
            lake.tables.release(name)
        return
    if not parked:  # the mirror goes back to the dump: if the sink is killed then, the table must be loaded again
        lake.tables.park_for_load([name], "it was being loaded from a dump", dump.transaction)
    if lake.load(read_rows(spark, dump.manifest, table, dump.folder, lake.types), table, dump.state(table)):
        log_loaded(dump, table)
    lake.catch_up()


def has_mirror(table: Table) -> bool:
    """Return whether a table has a mirror, which needs a primary key; log if it has none."""
    if not table.primary_key:
        text = f"{table.full_name} gets a change log and no mirror: it has no primary key"
        log.warning(LogEvent.TABLE_NOT_MIRRORED, text, table=table.full_name)
    return bool(table.primary_key)


def log_loaded(dump: ReadyDump, table: Table) -> None:
    """Log that a mirror has all rows of a dump."""
    log.info(
        LogEvent.TABLE_LOADED,
        f"the mirror of {table.full_name} is loaded",
        table=table.full_name,
        rows=sum(file.rows for file in dump.files(table)),
        dump=dump.manifest.id,
    )


def _kept(settings: Settings, manifest: Manifest) -> list[Table]:
    kept = TableFilter(settings.spark.tables)
    return [table for table in manifest.tables if kept.matches(table.schema, table.name)]
