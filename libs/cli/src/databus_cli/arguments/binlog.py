"""Arguments of `databus binlog`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from databus_cli.arguments.shared import add_format_options, add_tables
from databus_messages.formats import known

if TYPE_CHECKING:
    from databus_cli.binlog.gtids import GtidList
    from databus_cli.binlog.where import Where

#: the output that is also a value of --format; all other formats are the publisher's
JSON = "json"
PRETTY, SQL, FLASHBACK = "pretty", "sql", "flashback"
#: what `--action` selects
ACTIONS = ("insert", "update", "delete", "ddl")

_DESCRIPTION = """\
Print what binlogs of MySQL and MariaDB contain: for people, as JSON lines, or as SQL that does the changes again or
undoes them. FILEs are local files, or with --server files of that server, which is read like a replica reads it. A
summary is written to standard error.
"""
_EPILOG = """\
examples:
  Who deleted row 42 of shop.items?
    databus binlog mysql-bin.000007 --output pretty --tables shop.items --where 'id = 42' --action delete

  What happened between 10:30 and 10:35? The server finds the files.
    databus binlog --server db1 --user databus --password-file pw --output pretty \\
        --since 2026-11-20T10:30:00+01:00 --until 2026-11-20T10:35:00+01:00

  Undo the UPDATE with this GTID, and look at the SQL first.
    databus binlog mysql-bin.000007 --output flashback --gtids 0-1-4711 > undo.sql
    mariadb shop < undo.sql

  Follow the changes of a table.
    databus binlog --config databus.yaml --follow --output pretty --tables shop.items

  Decode compressed files.
    zstd -dc mysql-bin.000007.zst | databus binlog - --quiet | jq 'select(.type == "delete")'

outputs:
  json       one line for each row: its values, file, start and end offset, time, server_id, gtid, thread_id and, if it
             is logged, the statement:
               {"type": "insert", "schema": …, "table": …, …, "row": {"id": "1", "name": null}}
             "delete" has "row" too, "update" has "before" and "after". Every statement except BEGIN and COMMIT is
               {"type": "query", "schema": …, …, "thread_id": …, "query": "ALTER TABLE …"}
             A row above --row-limit is {"type": "oversized", …, "action": "insert", "size": …}
             A value is its exact text, NULL is null, a binary value is {"base64": "…"}. Columns that the row image
             does not contain are left out. Columns without known names are @1, @2, …
  pretty     a block for each transaction, with times in UTC and changed columns marked; coloured on a terminal
  sql        SQL that does the changes again
  flashback  SQL that undoes the changes, the last one first; nothing is printed if they cannot be undone exactly

formats:
  the records that the publisher would write for rows, and for DDL on tables that are described:
    {"topic": …, "key": …, "value": …, "headers": {…}}
  "topic" is given only for the format's own topics, "headers" only if there are any. Data that is not text is
  {"base64": "…"}. The pipeline is named binlog.

sql, flashback and all formats stop where the reader would stop; with --lenient they leave the doubtful changes out.
"""


class Offset(NamedTuple):
    """An offset in a binlog file."""

    #: empty: the first FILE of --from, the last FILE of --to
    file: str
    offset: int


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="*", metavar="FILE", help="binlog files, in order; - is standard input")
    kinds = parser.add_mutually_exclusive_group()
    outputs = (PRETTY, JSON, SQL, FLASHBACK)
    kinds.add_argument("--output", choices=outputs, default=JSON, help="kind of output (default: %(default)s)")
    kinds.add_argument("--format", choices=[JSON, *known()], help="print records in this format of the publisher")
    add_format_options(parser)
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="leave out changes that would stop the reader, continue, and count them at the end; not for json, pretty",
    )
    parser.add_argument(
        "--row-limit",
        type=_size,
        metavar="SIZE",
        help="do not decode rows of events above SIZE, such as 16MiB: json and pretty print their table, position and "
        "size, formats leave them out, sql and flashback stop",
    )
    parser.add_argument("--quiet", action="store_true", help="print no summary")
    _add_range(parser.add_argument_group("which part is read"))
    _add_choice(parser.add_argument_group("which changes are printed"))
    _add_server(parser.add_argument_group("servers"))


def _add_range(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--from",
        dest="start",
        type=_position,
        metavar="POS",
        help="from this event on: OFFSET in the first FILE, FILE:OFFSET, or the GTID of a transaction; fails at rows "
        "whose table map is before the offset",
    )
    group.add_argument(
        "--to",
        dest="end",
        type=_position,
        metavar="POS",
        help="up to the event at this OFFSET in the last FILE or at FILE:OFFSET, without it; or up to the transaction "
        "with this GTID, with it",
    )
    group.add_argument(
        "--since", type=_time, metavar="TIME", help="transactions committed at TIME or later: 2026-11-20T10:30:00+01:00"
    )
    group.add_argument("--until", type=_time, metavar="TIME", help="transactions committed before TIME")


def _add_choice(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--gtids", type=_gtids, metavar="SET", help="only these transactions")
    group.add_argument("--exclude-gtids", type=_gtids, metavar="SET", help="all but these transactions")
    group.add_argument("--thread", type=_number, metavar="ID", help="transactions of the connection with this id")
    group.add_argument(
        "--action",
        dest="actions",
        choices=ACTIONS,
        action="append",
        help="only rows that were inserted, updated or deleted, or only DDL; can be repeated; not with --format",
    )
    group.add_argument(
        "--where",
        type=_where,
        metavar="CONDITION",
        help="rows that meet it before or after the change: COLUMN = VALUE, !=, [NOT] IN (…), IS [NOT] NULL, AND; "
        "not with --format",
    )
    add_tables(group, "rows of these tables, and statements that may concern them")


def _add_server(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--server", metavar="HOST[:PORT]", help="read the binlogs and the tables' names of this server")
    group.add_argument("--follow", action="store_true", help="with --server: continue at the end, until interrupted")
    group.add_argument("--user", help="account on the server (default: databus)")
    group.add_argument("--password-file", type=Path, metavar="FILE", help="file with the account's password")
    group.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration of a pipeline: read its source, or log in as it does"
    )
    names = group.add_mutually_exclusive_group()
    names.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="definitions of the tables when reading starts, as `mysqldump --no-data --databases` writes them: names "
        "and labels that the binlog lacks",
    )
    names.add_argument(
        "--schema-server", metavar="HOST[:PORT]", help="take definitions of the tables in local FILEs from this server"
    )


def _position(text: str) -> Offset | str:
    """Return an offset, or a GTID."""
    if re.fullmatch(r"\d+-\d+-\d+|[\da-fA-F]{8}(-[\da-fA-F]{4}){3}-[\da-fA-F]{12}(:\w+)?:\d+", text):
        return text.lower()
    file, _, offset = text.rpartition(":")
    if not offset.isdecimal():
        raise argparse.ArgumentTypeError(f"{text[:200]!r} is neither OFFSET, nor FILE:OFFSET, nor a GTID")
    if int(offset) < 4:  # the magic number
        raise argparse.ArgumentTypeError(f"{text!r} is not the offset of an event; the first one is at 4")
    return Offset(file, int(offset))


def _time(text: str) -> int:
    from databus_binlog.times import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _gtids(text: str) -> GtidList:
    from databus_cli.binlog.gtids import GtidList

    try:
        return GtidList(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _where(text: str) -> Where:
    from databus_cli.binlog.where import Where

    try:
        return Where(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text[:200]!r} is not the id of a connection")
    return int(text)


def _size(text: str) -> int:
    from pydantic import TypeAdapter, ValidationError

    from databus_core.settings import Size

    try:
        return TypeAdapter(Size).validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it as 16MiB or 1000000") from None
