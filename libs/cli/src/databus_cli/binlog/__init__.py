"""`databus binlog`: print what binlogs contain."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from databus_binlog import AnyEvent, BinlogError, TableMap
from databus_cli.arguments.binlog import FLASHBACK, JSON, PRETTY, SQL, Offset
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.files import STANDARD_INPUT, DecoderOptions, file_name, read_files
from databus_cli.binlog.lines import Json, LineFormat
from databus_cli.binlog.summary import Summary
from databus_cli.binlog.tables import Completion
from databus_cli.selection import Selection
from databus_cli.terminal import byte_progress, notice
from databus_core.errors import DatabusError, UsageError

if TYPE_CHECKING:  # imported only with the options that need them
    from databus_cli.binlog.definitions import Definitions


def run(options: argparse.Namespace) -> int:
    """Print the binlog's content. If decoding fails, everything before the failure and a summary are printed."""
    logging.basicConfig(format="databus: %(message)s")  # as `notice`
    _require_sense(options)
    choice = _choice(options)
    lines, summary = _lines(options, choice), Summary()
    try:
        _print(options, choice, lines, summary)
    except BrokenPipeError:
        raise
    except (BinlogError, DatabusError, OSError):
        _report(options, choice, lines, summary)
        raise
    _report(options, choice, lines, summary)
    return 0


def _require_sense(options: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    if not _is_remote(options):
        if options.follow:
            raise UsageError("--follow needs a server that is read: --server, or --config")
        if not options.files:
            raise UsageError("name binlog files, or with --server or --config a server that is read")
        if (options.user or options.password_file) and not options.schema_server:
            raise UsageError("--user and --password-file are for --server and --schema-server")
        return
    if options.schema_server:
        raise UsageError("--server has the definitions of the tables: remove --schema-server")
    if not (options.files or options.start or options.since or options.follow):
        raise UsageError("say where to start on the server: FILE, --from, --since, or with --follow at its end")
    if isinstance(options.start, Offset) and not (options.start.file or options.files):
        raise UsageError("--from: name the file, as FILE:OFFSET")
    if isinstance(options.end, Offset) and not (options.end.file or options.files):
        raise UsageError("--to: name the file, as FILE:OFFSET")
    if options.follow and (options.output == FLASHBACK or options.until or options.end):
        raise UsageError("--follow has no end: it does not go with --output flashback, --until and --to")


def _is_remote(options: argparse.Namespace) -> bool:
    """Return whether the binlog of a server is read, not local files."""
    return bool(options.server or (options.config and not options.schema_server))


def _choice(options: argparse.Namespace) -> Choice | None:
    """Return what to choose; None: everything."""
    names = ("start", "end", "since", "until", "gtids", "exclude_gtids", "thread", "actions", "where")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if isinstance(given.get("start"), Offset):
        del given["start"]
    if isinstance(end := given.get("end"), Offset) and not end.file:
        given["end"] = Offset(file_name(options.files[-1]), end.offset)
    return Choice(**given) if given else None


def _lines(options: argparse.Namespace, choice: Choice | None) -> LineFormat:
    selection, kind = Selection(options.tables), options.format or options.output
    if kind not in {JSON, PRETTY, SQL, FLASHBACK}:
        # Imported only here: the formats' libraries take half a second, and --format json does not need them.
        from databus_cli.binlog.messages import Messages

        if options.where or options.actions:
            raise UsageError("--where and --action are for --output; records are chosen by --tables and by transaction")
        captured, definitions = selection.captured, _definitions(options)
        return Messages(kind, dict(options.options), captured, definitions, choice or Choice(), lenient=options.lenient)
    if options.options:
        raise UsageError(f"--option is for the publisher's formats; {kind} has none")
    if kind in {SQL, FLASHBACK}:
        from databus_cli.binlog.flashback import Flashback
        from databus_cli.binlog.sql import Sql

        statements = Sql if kind == SQL else Flashback
        return statements(selection.captured, _definitions(options), choice or Choice(), lenient=options.lenient)
    if options.lenient:
        raise UsageError(f"--lenient is not for {kind}, which leaves nothing out")
    completion = Completion(notice, _definitions(options) if _has_definitions(options) else None)
    if kind == JSON:
        lines: LineFormat = Json(selection, completion)
    else:
        from databus_cli.binlog.pretty import Pretty

        lines = Pretty(selection, completion, coloured=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    if choice is None:
        return lines
    from databus_cli.binlog.chosen import ChosenLines

    return ChosenLines(lines, choice)


def _has_definitions(options: argparse.Namespace) -> bool:
    return bool(options.schema or options.schema_server or _is_remote(options))


def _definitions(options: argparse.Namespace) -> Definitions:
    from databus_cli.binlog.definitions import FileDefinitions, NoDefinitions

    if options.schema:
        return FileDefinitions(options.schema)
    if not _has_definitions(options):
        return NoDefinitions()
    from databus_cli.binlog.server import definitions_of, login_of

    return definitions_of(login_of(options, options.schema_server or options.server))


def _print(options: argparse.Namespace, choice: Choice | None, lines: LineFormat, summary: Summary) -> None:
    output, decoding = sys.stdout.buffer, lines.decoder_options()
    decoding["row_limit"] = options.row_limit
    with byte_progress(_size(options)) as advance:

        def count(size: int) -> None:
            summary.size += size
            advance(size)

        try:
            for event, tables in _events(options, lines, count, decoding):
                if choice is not None and choice.ends_before(event):
                    break
                summary.add(event, tables)
                output.writelines(lines.of(event, tables))
            output.writelines(lines.rest())
        finally:
            output.flush()


def _events(
    options: argparse.Namespace, lines: LineFormat, count: Callable[[int], None], decoding: DecoderOptions
) -> Iterator[tuple[AnyEvent, Mapping[str, TableMap]]]:
    skip_head = partial(lines.start, inside=True)
    if _is_remote(options):
        from databus_cli.binlog.server import login_of, read_server

        return read_server(
            login_of(options, options.server),
            options.files,
            start=options.start,
            since=options.since,
            follow=options.follow,
            skip_head=skip_head,
            idle=sys.stdout.buffer.flush,
            count=count,
            **decoding,
        )
    files, start = options.files, options.start if isinstance(options.start, Offset) else None
    if start and start.file:
        files = files[_index(files, start.file) :]
    offset = start.offset if start else None
    return read_files(files, start=offset, skip_head=skip_head, count=count, warn=notice, **decoding)


def _index(files: list[str], name: str) -> int:
    """Return the index of the file with this name."""
    for index, path in enumerate(files):
        if file_name(path) == name:
            return index
    raise UsageError(f"{name} is none of the files: {', '.join(map(file_name, files))}")


def _report(options: argparse.Namespace, choice: Choice | None, lines: LineFormat, summary: Summary) -> None:
    for line in (*lines.finish(), *(choice.notices() if choice else ())):
        notice(line)
    if summary and not options.quiet:
        sys.stderr.write(str(summary))


def _size(options: argparse.Namespace) -> int | None:
    """Return the total size in bytes of all regular files; None if it is not known."""
    if STANDARD_INPUT in options.files or _is_remote(options):
        return None
    return sum(path.stat().st_size for path in map(Path, options.files) if path.is_file())
