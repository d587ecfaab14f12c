"""`databus dump download`: the files of a dump into a folder, verified, under a lease."""

import argparse
import asyncio
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import msgspec

from databus_cli.dump.tables import selected_tables
from databus_cli.dump.texts import counts
from databus_cli.selection import Selection
from databus_cli.terminal import byte_progress, notice
from databus_core.dump_client import DumpApi
from databus_core.errors import DumpUnusable
from databus_core.manifest import DumpFile, FileFormat, Manifest

#: suffix of a file that is not complete, or not verified
_PART = ".part"
_MANIFEST = "manifest.json"


async def download(api: DumpApi, options: argparse.Namespace) -> int:
    """Download the files that the folder does not have yet, and last the manifest."""
    selected = _selected(await api.dump(options.dump), options)
    folder: Path = options.folder or Path(selected.id)
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    size = sum(file.bytes for file in selected.files)
    async with api.leased(selected.id):
        with byte_progress(size, beside_results=False) as advance:
            for file in selected.files:
                await _fetch(api, selected.id, file, folder, advance)
    text = msgspec.json.format(msgspec.json.encode(selected)) + b"\n"
    await asyncio.to_thread((folder / _MANIFEST).write_bytes, text)
    notice(f"{folder}: {len(selected.files)} files, {counts(sum(file.rows for file in selected.files), size)}")
    return 0


def _selected(manifest: Manifest, options: argparse.Namespace) -> Manifest:
    """Return the manifest of the selected tables, in one format.

    Raises DumpUnusable, also for a file that would be written outside the folder.
    """
    tables = selected_tables(manifest, Selection(options.tables))
    kind = FileFormat(options.format) if options.format else manifest.formats[0]
    files = tuple(chain.from_iterable(manifest.files_of(tables, kind)))
    for file in files:
        if file.name in {"", ".", "..", _MANIFEST} or Path(file.name).name != file.name:
            raise DumpUnusable(f"dump {manifest.id}: {file.name!r} is no name for a file")
    return msgspec.structs.replace(manifest, tables=tuple(tables), formats=(kind,), files=files)


async def _fetch(api: DumpApi, dump: str, file: DumpFile, folder: Path, advance: Callable[[int], None]) -> None:
    """Download a file, or the rest of what an earlier download left, and give it its name once it is verified."""
    path = folder / file.name
    part = path if path.exists() else folder / (file.name + _PART)
    await api.download(dump, file, part, advance)
    await asyncio.to_thread(part.replace, path)
