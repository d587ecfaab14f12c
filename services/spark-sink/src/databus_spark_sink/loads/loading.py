"""Load a dump into an empty lake, several tables at a time, each in steps of some files.

The files of a step are downloaded, loaded with one commit, and deleted. So the lake never has more files than a step of
each table that is being loaded, and a load that was interrupted continues after the last step of each table.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import accumulate, count

import msgspec

from databus_core.dump_client import DumpApi
from databus_core.events import Table
from databus_core.manifest import DumpFile
from databus_core.runtime import uninterrupted
from databus_spark.dump_files import Say, download_file, read_rows
from databus_spark.mirror_state import MirrorState
from databus_spark_sink.lake import Lake
from databus_spark_sink.loads.dumps import ReadyDump, has_mirror, log_loaded

#: tables that are loaded at the same time
_PARALLEL = 4
#: bytes of the files of a step, unless a single file is larger
_STEP_BYTES = 512 * 2**20


class DumpLoader:
    """Loads one dump."""

    def __init__(self, say: Say, api: DumpApi, lake: Lake, dump: ReadyDump) -> None:
        self._say = say
        self._api = api
        self._lake = lake
        self._dump = dump
        self._loaded = count(1)

    async def load(self) -> None:
        """Load all tables. The caller has a lease of the dump."""
        waiting = iter(self._dump.tables)
        workers = [asyncio.create_task(self._load_tables(waiting)) for _ in range(_PARALLEL)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
        names = [(table.schema, table.name) for table in self._dump.tables if table.primary_key]
        await asyncio.to_thread(self._lake.tables.add, names)
        await asyncio.to_thread(self._dump.folder.delete)

    async def _load_tables(self, waiting: Iterator[Table]) -> None:
        for table in waiting:
            if has_mirror(table):
                await self._load_table(table)
            number, total = next(self._loaded), len(self._dump.tables)
            self._say(f"loading dump {self._dump.manifest.id}: {number} of {total} tables are loaded")

    async def _load_table(self, table: Table) -> None:
        """Load a table step by step, until it is complete or parked."""
        files = self._dump.files(table)
        state = await asyncio.to_thread(self._begun, table)
        while state.files is not None:
            first, step = state.files, _next_step(files[state.files :])
            end = first + len(step)
            for number, file in enumerate(step, first + 1):
                dump = self._dump.manifest
                self._say(f"loading {table.full_name} from dump {dump.id}: file {number} of {len(files)}")
                await download_file(self._api, dump, file, self._dump.folder)
            state = msgspec.structs.replace(state, files=end if end < len(files) else None)
            if not await uninterrupted(asyncio.to_thread(self._load_step, table, step, state)):
                return  # the table is parked
            if state.files is None:
                log_loaded(self._dump, table)

    def _begun(self, table: Table) -> MirrorState:
        """Return the state of the mirror if its rows are from this dump, or else one without any file."""
        begin = msgspec.structs.replace(self._dump.state(table), types=self._lake.types)
        state = self._lake.mirror((table.schema, table.name)).state
        return state if state and _origin(state) == _origin(begin) else msgspec.structs.replace(begin, files=0)

    def _load_step(self, table: Table, step: Sequence[DumpFile], state: MirrorState) -> bool:
        session = self._lake.mirror((table.schema, table.name)).table.spark  # see databus_spark.table
        rows = read_rows(session, self._dump.manifest, table, self._dump.folder, self._lake.types, step)
        is_loaded = self._lake.load(rows, table, state)
        for file in step:
            self._dump.folder.inside(file.name).delete()
        return is_loaded


def _origin(state: MirrorState) -> tuple[object, ...]:
    """Return what two states have in common if one load can continue the other."""
    return state.base and state.base.id, state.transaction, state.types


def _next_step(files: Sequence[DumpFile]) -> Sequence[DumpFile]:
    """Return the first of these files, as many as a step may have."""
    ends = accumulate(file.bytes for file in files)
    return files[: max(1, sum(end <= _STEP_BYTES for end in ends))]
