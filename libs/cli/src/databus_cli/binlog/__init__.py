"""`databus binlog`: print what binlogs contain."""

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from databus_binlog import AnyEvent, BinlogError, TableMap
from databus_cli.arguments.binlog import Offset
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.files import STANDARD_INPUT, DecoderOptions, file_name, read_files
from databus_cli.binlog.lines import LineFormat
from databus_cli.binlog.outputs import lines_of
from databus_cli.binlog.summary import Summary
from databus_cli.binlog.usage import choice_of, is_remote, require_sense
from databus_cli.terminal import byte_progress, notice
from databus_core.errors import DatabusError, UsageError


def run(options: argparse.Namespace) -> int:
    """Print the binlog's content. If decoding fails, everything before the failure and a summary are printed."""
    logging.basicConfig(format="databus: %(message)s")  # as `notice`
    require_sense(options)
    choice = choice_of(options)
    lines, summary = lines_of(options, choice), Summary()
    try:
        _print(options, choice, lines, summary)
    except BrokenPipeError:
        raise
    except (BinlogError, DatabusError, OSError):
        _report(options, choice, lines, summary)
        raise
    _report(options, choice, lines, summary)
    return 0


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
    if is_remote(options):
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
    if STANDARD_INPUT in options.files or is_remote(options):
        return None
    return sum(path.stat().st_size for path in map(Path, options.files) if path.is_file())
