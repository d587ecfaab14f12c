"""`databus binlog`: decode binlog files without a server."""

import argparse
import logging
import sys
from functools import partial
from pathlib import Path

from databus_binlog import BinlogError
from databus_cli.arguments.binlog import JSON
from databus_cli.binlog.files import STANDARD_INPUT, read_files
from databus_cli.binlog.lines import Json, LineFormat
from databus_cli.binlog.summary import Summary
from databus_cli.binlog.tables import Completion
from databus_cli.selection import Selection
from databus_cli.terminal import byte_progress, notice
from databus_core.errors import DatabusError, InvalidSettings


def run(options: argparse.Namespace) -> int:
    """Print the content of the files. If decoding fails, everything before the failure and a summary are printed."""
    logging.basicConfig(format="databus: %(message)s")  # as `notice`
    lines, summary = _lines(options), Summary()
    try:
        _print(options, lines, summary)
    except BrokenPipeError:
        raise
    except (BinlogError, DatabusError, OSError):
        _report(options, lines, summary)
        raise
    _report(options, lines, summary)
    return 0


def _lines(options: argparse.Namespace) -> LineFormat:
    selection = Selection(options.tables)
    if options.format != JSON:
        # Imported only here: the formats' libraries take half a second, and --format json does not need them.
        from databus_cli.binlog.messages import Messages

        return Messages(
            options.format, dict(options.options), selection.captured, schema=options.schema, lenient=options.lenient
        )
    if options.options:
        raise InvalidSettings("--option is for the publisher's formats; json has none")
    if options.schema:
        raise InvalidSettings("--schema is for the publisher's formats; json prints only what the files contain")
    if options.lenient:
        raise InvalidSettings("--lenient is for the publisher's formats; json leaves nothing out")
    return Json(selection, Completion(notice))


def _print(options: argparse.Namespace, lines: LineFormat, summary: Summary) -> None:
    output, decoding = sys.stdout.buffer, lines.decoder_options()
    decoding["row_limit"] = options.row_limit
    with byte_progress(_size(options.files)) as advance:

        def count(size: int) -> None:
            summary.size += size
            advance(size)

        events = read_files(
            options.files,
            start=options.start,
            skip_head=partial(lines.start, inside=True),
            count=count,
            warn=notice,
            **decoding,
        )
        try:
            for event, tables in events:
                summary.add(event, tables)
                output.writelines(lines.of(event, tables))
        finally:
            output.flush()


def _report(options: argparse.Namespace, lines: LineFormat, summary: Summary) -> None:
    for line in lines.finish():
        notice(line)
    if summary and not options.quiet:
        sys.stderr.write(str(summary))


def _size(files: list[str]) -> int | None:
    """Return the total size in bytes of all regular files; None if standard input is one of the files."""
    if STANDARD_INPUT in files:
        return None
    return sum(path.stat().st_size for path in map(Path, files) if path.is_file())
