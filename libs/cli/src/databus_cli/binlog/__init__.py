"""`databus binlog`: decode binlog files offline, with no server."""

import argparse
import sys
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from databus.errors import DatabusError, InvalidSettings
from databus.settings import Size
from databus_binlog import BinlogError, Query
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
  others   the records that the publisher writes, of rows and of DDL on tables that the files describe:
             {{"topic": …, "key": …, "value": …, "headers": {{…}}}}
           topic only of the format's own topics, headers only where there are some; what is no text is
           {{"base64": "…"}}. The pipeline is named {NAME}.

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
        help="do not decode rows that are larger, as 16MiB: of them only table, place and size are told",
    )
    parser.add_argument("--quiet", action="store_true", help="leave the summary out")
    parser.set_defaults(run=run)


def _offset(text: str) -> int:
    if not text.isdecimal() or int(text) < 4:
        raise argparse.ArgumentTypeError(f"{text!r} is no offset of an event; the first one is at 4")
    return int(text)


def _size_of(text: str) -> int:
    try:
        return TypeAdapter(Size).validate_python(text)
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
    if options.format != _JSON:
        return Messages(options.format, dict(options.options), Selection(options.tables).table)
    if options.options:
        raise InvalidSettings("--option is for the publisher's formats; json has none")
    return Json()


def _print(options: argparse.Namespace, lines: LineFormat, summary: Summary) -> None:
    selection, completion, output = Selection(options.tables), Completion(tell), sys.stdout.buffer
    with byte_progress(_size(options.files)) as advance:

        def count(size: int) -> None:
            summary.size += size
            advance(size)

        events = read_files(
            options.files,
            start=options.start,
            skip_head=partial(setattr, lines, "head"),
            count=count,
            warn=tell,
            wanted=selection.table,
            describe=completion.describe,
            row_limit=options.row_limit,
        )
        try:
            for event, tables in events:
                summary.add(event, tables)
                if not isinstance(event, Query) or selection.statement(event):
                    output.writelines(lines.of(event, tables))
        finally:
            output.flush()


def _report(options: argparse.Namespace, lines: LineFormat, summary: Summary) -> None:
    for what, count in lines.finish().items():
        tell(f"{what} left out: {count}; this format has no message for them, --format json shows them")
    if summary and not options.quiet:
        sys.stderr.write(str(summary))


def _size(files: list[str]) -> int | None:
    """Add up the sizes of the files that can be asked for it."""
    if STANDARD_INPUT in files:
        return None
    return sum(path.stat().st_size for path in map(Path, files) if path.is_file())
