"""The outputs: which one the options choose, and with which definitions of tables."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from databus_cli.arguments.binlog import FLASHBACK, JSON, PRETTY, SQL
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.lines import Json, LineFormat, LoggedLines
from databus_cli.binlog.tables import Completion
from databus_cli.binlog.usage import is_remote
from databus_cli.selection import Selection
from databus_cli.terminal import notice
from databus_core.errors import UsageError

if TYPE_CHECKING:  # imported only with the options that need them
    from databus_cli.binlog.definitions import Definitions


def lines_of(options: argparse.Namespace, choice: Choice | None) -> LineFormat:
    """Return the chosen output. Raises UsageError for an option that is not for it."""
    selection, kind = Selection(options.tables), options.format or options.output
    # Modules are imported only with the outputs that need them: some of their libraries take half a second.
    if kind not in {JSON, PRETTY, SQL, FLASHBACK}:
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
        lines: LoggedLines = Json(selection, completion)
    else:
        from databus_cli.binlog.pretty import Pretty

        lines = Pretty(selection, completion, coloured=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    if choice is None:
        return lines
    from databus_cli.binlog.chosen import ChosenLines

    return ChosenLines(lines, choice)


def _has_definitions(options: argparse.Namespace) -> bool:
    return bool(options.schema or options.schema_server or is_remote(options))


def _definitions(options: argparse.Namespace) -> Definitions:
    from databus_cli.binlog.definitions import FileDefinitions, NoDefinitions

    if options.schema:
        return FileDefinitions(options.schema)
    if not _has_definitions(options):
        return NoDefinitions()
    from databus_cli.binlog.server import definitions_of, login_of

    return definitions_of(login_of(options, options.schema_server or options.server))
