"""`databus dump list` and `show`."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable

import msgspec
from rich.console import Console
from rich.filesize import decimal
from rich.table import Column, Table

from databus_cli.dump.texts import amount, time_of
from databus_cli.terminal import notice
from databus_core.dump_client import DumpApi
from databus_core.manifest import FileFormat, Manifest, Mode


async def listing(api: DumpApi, options: argparse.Namespace) -> int:
    """Print all dumps, the newest first."""
    found = await api.dumps()
    if options.json:
        print_json(found)
    elif found:
        _print(_table_of(found))
    else:
        notice("no dumps")
    return 0


async def show(api: DumpApi, options: argparse.Namespace) -> int:
    """Print one dump: its state and position, and the size of each table."""
    manifest = await api.dump(options.dump)
    if options.json:
        print_json([manifest])
        return 0
    console = _console()
    for name, value in _members(manifest):
        console.print(f"{name:<12}{value}")
    if manifest.tables:
        console.print()
        _print(_sizes(manifest))
    return 0


def print_json(manifests: Iterable[Manifest]) -> None:
    """Print each manifest as one line of JSON."""
    sys.stdout.buffer.writelines(msgspec.json.encode(each) + b"\n" for each in manifests)


def _table_of(found: list[Manifest]) -> Table:
    whole = [Column(name, no_wrap=True) for name in ("dump", "state", "requested")]  # an id has to be copied
    table = Table(*whole, "tables", "size", "formats", "error", box=None, pad_edge=False)
    for each in found:
        tables = f"{len(each.tables)}" if each.tables else "all" if each.requested is None else " ".join(each.requested)
        formats = " ".join(each.formats)
        table.add_row(each.id, each.state, time_of(each.created), tables, amount(each), formats, each.error or "")
    return table


def _members(manifest: Manifest) -> Iterable[tuple[str, str]]:
    yield "dump", manifest.id
    yield "state", f"{manifest.state}{f': {manifest.error}' if manifest.error else ''}"
    yield "pipeline", manifest.pipeline
    yield "requested", time_of(manifest.created)
    if manifest.completed:
        yield "ended", time_of(manifest.completed)
    if manifest.source:
        yield "source", manifest.source
    if position := manifest.position:
        yield (
            "position",
            " = ".join(filter(None, [position.file and f"{position.file}:{position.offset}", position.gtid_set])),
        )
    if manifest.mode is Mode.CHUNKED:
        done = sum(chunk.position is not None for chunk in manifest.chunks)
        yield "chunks", f"{done} of {len(manifest.chunks)}, each with a position of its own (--json shows them)"
    if size := amount(manifest):
        yield "size", size


def _sizes(manifest: Manifest) -> Table:
    """Lay out the tables with their rows, and the bytes of each format."""
    rows: Counter[str] = Counter()
    sizes: Counter[tuple[str, FileFormat]] = Counter()
    for file in manifest.files:
        rows[file.table] += file.rows if file.format is manifest.formats[0] else 0
        sizes[file.table, file.format] += file.bytes
    table = Table("table", "rows", *manifest.formats, box=None, pad_edge=False)
    for each in manifest.tables:
        name = each.full_name
        table.add_row(name, f"{rows[name]:,}", *(decimal(sizes[name, kind]) for kind in manifest.formats))
    return table


def _print(table: Table) -> None:
    _console().print(table)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 200, markup=False, highlight=False)
