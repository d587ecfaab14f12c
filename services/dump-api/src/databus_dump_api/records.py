"""Files in the publisher's formats: records with the marks of a snapshot, made from a dump's JSON lines.

They are made when all rows have been read: only then it is known which rows are the first and the last.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from databus_core.errors import DumpUnusable, FatalError, InvalidSettings
from databus_core.events import Table
from databus_core.manifest import DumpFile, FileFormat, Manifest
from databus_core.runtime import uninterrupted
from databus_core.settings import Settings
from databus_core.settings.rules import default_rule
from databus_dump_api.parts import PartWriter
from databus_dump_api.store import Output
from databus_messages.formats.base import Format, MessageSource, SnapshotRows
from databus_messages.formats.canal_json import CanalJson
from databus_messages.formats.debezium.json import DebeziumJson
from databus_messages.formats.maxwell_json import MaxwellJson
from databus_messages.record_lines import line_of
from databus_messages.snapshots import snapshots

_FORMATS: dict[FileFormat, type[Format[Any]]] = {
    FileFormat.DEBEZIUM_JSON: DebeziumJson,
    FileFormat.MAXWELL_JSON: MaxwellJson,
    FileFormat.CANAL_JSON: CanalJson,
}


async def write_records(settings: Settings, manifest: Manifest, output: Output) -> list[DumpFile]:
    """Write the files of a dump, whose JSON lines are published, in each of the publisher's formats that are chosen.

    Raises PoisonError for a value that a format cannot express, FatalError for tables with `compat: strict`.
    """
    wanted = [each for each in _FORMATS if each in manifest.formats]
    if wanted and (strict := sorted({file.table for file in manifest.files if file.strict})):
        raise FatalError(
            f"{', '.join(strict)}: compat: strict loses information that {wanted[0]} needs; leave {wanted[0]} out of "
            "dumps.formats, or request a dump without these tables"
        )
    try:
        return [file for each in wanted for file in await _write(settings, manifest, output, each)]
    except DumpUnusable as error:
        raise FatalError(f"{error} (or without {', '.join(wanted)} in dumps.formats)") from error


async def _write(settings: Settings, manifest: Manifest, output: Output, file_format: FileFormat) -> list[DumpFile]:
    @asynccontextmanager
    async def local(file: DumpFile) -> AsyncIterator[Path]:
        with ExitStack() as downloaded:
            yield await asyncio.to_thread(downloaded.enter_context, output.local(file))

    files: list[DumpFile] = []
    parts: PartWriter | None = None
    try:
        async with aclosing(snapshots(manifest, manifest.tables, local)) as rows:
            async for snapshot in rows:
                if parts is None:
                    parts = PartWriter(output, snapshot.table, file_format, settings.dumps.part_size)
                    encoder = _encoder(settings, manifest, snapshot.table, file_format)
                await uninterrupted(asyncio.to_thread(_encode, encoder, snapshot, parts))
                if snapshot.last_of_table:
                    files += await uninterrupted(asyncio.to_thread(parts.close))
                    parts = None
    finally:
        if parts:
            parts.abandon()
    return files


def _encoder(settings: Settings, manifest: Manifest, table: Table, file_format: FileFormat) -> Format[Any]:
    """Make a table's encoder, with the options of the table's rule if the rule has this format."""
    rule = default_rule(settings.publisher.rules, table.schema, table.name)
    kind, chosen = _FORMATS[file_format], rule.options if rule and rule.format == file_format else {}
    try:
        options = kind.options_type.model_validate(chosen)
    except ValidationError as error:
        raise InvalidSettings(f"{rule}: wrong options; `databus-publisher --check` names them") from error
    return kind(MessageSource(manifest.pipeline, manifest.flavor, "", 0), options)


def _encode(encoder: Format[Any], snapshot: SnapshotRows, parts: PartWriter) -> None:
    if lines := list(map(line_of, encoder.snapshot(snapshot))):
        parts.write_records(lines, len(snapshot.rows))
