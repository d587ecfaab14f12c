"""Arguments of `databus binlog`."""

import argparse
from pathlib import Path

from databus_cli.arguments.shared import add_format_options, add_tables
from databus_messages.formats import known

#: the only format that is not one of the publisher's
JSON = "json"

_DESCRIPTION = """\
Decode binlog files of MySQL and MariaDB without a server: JSON lines on standard output, then a summary on standard
error.
"""
_EPILOG = """\
formats:
  json     one line for each row, with its file, start and end offset, time, server_id and gtid:
             {"type": "insert", "schema": …, "table": …, …, "row": {"id": "1", "name": null}}
           "delete" has "row" too, "update" has "before" and "after". Every statement except BEGIN and COMMIT is
             {"type": "query", "schema": …, …, "thread_id": …, "query": "ALTER TABLE …"}
           A row above --row-limit is {"type": "oversized", "schema": …, "table": …, …, "action": "insert", "size": …}
           A value is its exact text, NULL is null, a binary value is {"base64": "…"}. Columns that the row image
           does not contain are left out. Columns that the file does not name are @1, @2, …
  others   the records that the publisher would write for rows, and for DDL on tables that the files describe:
             {"topic": …, "key": …, "value": …, "headers": {…}}
           "topic" is given only for the format's own topics, "headers" only if there are any. Data that is not text
           is {"base64": "…"}. The pipeline is named binlog. --schema gives what a server with another
           binlog_row_metadata than FULL does not log. The command stops where the reader would stop; with
           --lenient it leaves the doubtful changes out and continues.

examples:
  databus binlog mysql-bin.000007 mysql-bin.000008 --tables 'shop.*'
  zstd -dc mysql-bin.000007.zst | databus binlog - --quiet | jq 'select(.type == "delete")'
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="+", metavar="FILE", help="binlog files, in order; - is standard input")
    parser.add_argument("--format", choices=[JSON, *known()], default=JSON, help="output format (default: %(default)s)")
    add_format_options(parser)
    parser.add_argument(
        "--from",
        dest="start",
        type=_offset,
        metavar="POS",
        help="start at the event at this offset of the first FILE; fails at rows whose table map is before this offset",
    )
    add_tables(parser, "rows of these tables, and statements that may concern them")
    parser.add_argument(
        "--row-limit",
        type=_size,
        metavar="SIZE",
        help="leave out the rows of events above SIZE, such as 16MiB; json prints their table, position and size",
    )
    parser.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="definitions of the tables when the first FILE begins, as `mysqldump --no-data --databases` writes them: "
        "column names and labels that the files lack; not for json",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="leave out changes that would stop the reader, continue, and count them at the end; not for json",
    )
    parser.add_argument("--quiet", action="store_true", help="print no summary")


def _offset(text: str) -> int:
    if not text.isdecimal() or int(text) < 4:
        raise argparse.ArgumentTypeError(f"{text!r} is not the offset of an event; the first one is at 4")
    return int(text)


def _size(text: str) -> int:
    from pydantic import TypeAdapter, ValidationError

    from databus_core.settings import Size

    try:
        return TypeAdapter(Size).validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it as 16MiB or 1000000") from None
