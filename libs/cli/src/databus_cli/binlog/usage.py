"""What the options of `databus binlog` mean together."""

import argparse

from databus_cli.arguments.binlog import FLASHBACK, Offset
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.files import file_name
from databus_core.errors import UsageError


def require_sense(options: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    if not is_remote(options):
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


def is_remote(options: argparse.Namespace) -> bool:
    """Return whether the binlog of a server is read, not local files."""
    return bool(options.server or (options.config and not options.schema_server))


def choice_of(options: argparse.Namespace) -> Choice | None:
    """Return what to choose; None: everything."""
    names = ("start", "end", "since", "until", "gtids", "exclude_gtids", "thread", "actions", "where")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if isinstance(given.get("start"), Offset):
        del given["start"]
    if isinstance(end := given.get("end"), Offset) and not end.file:
        given["end"] = Offset(file_name(options.files[-1]), end.offset)
    return Choice(**given) if given else None
