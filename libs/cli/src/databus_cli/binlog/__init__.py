"""`databus binlog`: decode binlog files offline, with no server."""

import argparse
import sys
from functools import partial
from pathlib import Path

from pydantic import ByteSize, TypeAdapter, ValidationError

from databus.errors import DatabusError, InvalidSettings
from databus_binlog import BinlogError
from databus_cli.binlog.files import STANDARD_INPUT, read_files
from databus_cli.binlog.lines import Json, LineFormat
from databus_cli.binlog.messages import NAME, Messages
from databus_cli.binlog.summary import Summary
from databus_cli.binlog.tables import Completion
from databus_cli.records import add_options
from databus_cli.selection import Selection, add_tables
from databus_cli.terminal import byte_progress, tell
from databus_messages.formats import known

_DESCRIPTION = """\
Decode binlog files of MySQL and MariaDB, with no server: JSON lines on standard output, then a summary on standard
error.
"""
_JSON = "json"
_EPILOG = f"""\
formats:
  json     one line for each row, with its file, start and end offset, time, server_id and gtid:
             {{"type": "insert", "schema": …, "table": …, …, "row": {{"id": "1", "name": null}}}}
           "delete" has "row" too, "update" has "before" and "after"; every statement but BEGIN and COMMIT is
             {{"type": "query", "schema": …, …, "thread_id": …, "query": "ALTER TABLE …"}}
           rows above --row-limit are {{"type": "oversized", "schema": …, "table": …, …, "action": "insert", "size": …}}
           A value is its exact text, NULL is null, a binary value is {{"base64": "…"}}; a column that the row image
           does not hold is left out. A column that the file does not name is @1, @2, …
  others   the records that reader and publisher make of it, of rows and of DDL on tables that the files describe:
             {{"topic": …, "key": …, "value": …, "headers": {{…}}}}
           topic only of the format's own topics, headers only where there are some; what is no text is
           {{"base64": "…"}}. The pipeline is named {NAME}. Where the reader stops, the command stops, too; with
           --lenient it leaves out what is in doubt.

examples:
  databus binlog mysql-bin.000007 mysql-bin.000008 --tables 'shop.*'
  zstd -dc mysql-bin.000007.zst | databus binlog - --quiet | jq 'select(.type == "delete")'
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "binlog",
        help="decode binlog files, with no server",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="binlog files, in their order; - is standard input")
    parser.add_argument(
        "--format", choices=[_JSON, *known()], default=_JSON, help="of the output (default: %(default)s)"
    )
    add_options(parser)
    parser.add_argument(
        "--from",
        dest="start",
        type=_offset,
        metavar="POS",
        help="begin with the event at this offset of the first FILE",
    )
    add_tables(parser, "rows of these tables, and statements that may concern them")
    parser.add_argument(
        "--row-limit",
        type=_size_of,
        metavar="SIZE",
        help="do not decode rows that are larger, as 16MiB: only their table, position and size are printed",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="leave out what stops the reader, go on, and report at the end what was left out; not for json",
    )
    parser.add_argument("--quiet", action="store_true", help="print no summary")
    parser.set_defaults(run=run)


def _offset(text: str) -> int:
    if not text.isdecimal() or int(text) < 4:
        raise argparse.ArgumentTypeError(f"{text!r} is not the offset of an event; the first one is at 4")
    return int(text)


def _size_of(text: str) -> int:
    try:
        return TypeAdapter(ByteSize).validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it as 16MiB or 1000000") from None


def run(options: argparse.Namespace) -> int:
    """Print what the files hold; what comes before a failure is printed, too."""
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
    if options.format != _JSON:
        return Messages(options.format, dict(options.options), selection.captured, lenient=options.lenient)
    if options.options:
        raise InvalidSettings("--option is for the publisher's formats; json has none")
    if options.lenient:
        raise InvalidSettings("--lenient is for the publisher's formats; json leaves nothing out")
    return Json(selection, Completion(tell))


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
            warn=tell,
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
        tell(line)
    if summary and not options.quiet:
        sys.stderr.write(str(summary))


def _size(files: list[str]) -> int | None:
    """Return the size of all regular files together; None with standard input."""
    if STANDARD_INPUT in files:
        return None
    return sum(path.stat().st_size for path in map(Path, files) if path.is_file())
