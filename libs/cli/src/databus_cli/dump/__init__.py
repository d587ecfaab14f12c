"""`databus dump messages`: a dump's rows as the records of any format."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from databus_cli.records import line_of, output_plan
from databus_cli.selection import Selection
from databus_cli.terminal import byte_progress
from databus_core.dump_client import DumpApi
from databus_core.errors import DumpUnusable
from databus_core.events import Table
from databus_core.manifest import DumpFile, FileFormat, Manifest, State
from databus_core.settings import load
from databus_core.settings.rules import Rule
from databus_messages.formats import AnyFormat
from databus_messages.formats.base import MessageSource
from databus_messages.outputs import OutputPlan
from databus_messages.snapshots import snapshots


def run(options: argparse.Namespace) -> int:
    """Print the records. If the command fails, all records before the failure are still printed."""
    plan = output_plan(Rule(match=["*.*"], format=options.format, options=dict(options.options)))
    api = DumpApi(options.url) if options.url else DumpApi.of(load(options.config).dumps)
    asyncio.run(_run(options, api, plan))
    return 0


async def _run(options: argparse.Namespace, api: DumpApi, plan: OutputPlan) -> None:
    async with api:
        manifest = await api.dump(options.dump)
        tables = _readable(manifest, Selection(options.tables))
        source = MessageSource(name=manifest.pipeline, flavor=manifest.flavor, host="", port=0)
        async with api.leased(manifest.id):
            await _print(api, manifest, tables, plan.format(source, plan.options))


def _readable(manifest: Manifest, selection: Selection) -> list[Table]:
    """Return a dump's selected tables. Raises DumpUnusable if there are none or their rows cannot become records."""
    if manifest.state is not State.COMPLETE:
        why = f": {manifest.error}" if manifest.error else ""
        raise DumpUnusable(f"dump {manifest.id} is {manifest.state}, not complete{why}")
    tables = [table for table in manifest.tables if selection.table(table.schema, table.name)]
    if not tables:
        raise DumpUnusable(f"dump {manifest.id} has none of the selected tables")
    files = chain.from_iterable(manifest.files_of(tables, FileFormat.JSONL))
    if strict := sorted({file.table for file in files if file.strict}):
        raise DumpUnusable(
            f"dump {manifest.id}: the rows of {', '.join(strict)} were written with compat: strict and lack "
            "information that formats need: select other tables with --tables"
        )
    return tables


async def _print(api: DumpApi, manifest: Manifest, tables: list[Table], encoder: AnyFormat) -> None:
    output = sys.stdout.buffer
    files = chain.from_iterable(manifest.files_of(tables, FileFormat.JSONL))
    with (
        byte_progress(sum(file.bytes for file in files)) as advance,
        TemporaryDirectory(prefix="databus-") as folder,
    ):
        fetch = partial(_downloaded, api, manifest.id, Path(folder), advance)
        async with aclosing(snapshots(manifest, tables, fetch)) as rows:
            try:
                async for snapshot in rows:
                    # In a thread: the reader of the output may be slow, and the lease has to be renewed meanwhile.
                    await asyncio.to_thread(output.writelines, map(line_of, encoder.snapshot(snapshot)))
            finally:
                output.flush()


@asynccontextmanager
async def _downloaded(
    api: DumpApi, dump: str, folder: Path, advance: Callable[[int], None], file: DumpFile
) -> AsyncIterator[Path]:
    """Download and verify a file, and delete it after use."""
    path = folder / "part"
    await api.download(dump, file, path)
    try:
        yield path
    finally:
        path.unlink()
    advance(file.bytes)
