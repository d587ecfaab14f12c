"""The commands and their parser. `--help` and `--version` must be quick, so little is imported here."""

import argparse
from collections.abc import Collection
from importlib import import_module
from typing import Any

#: command → help. `databus_cli.arguments.NAME` has the arguments of a command, `databus_cli.NAME` its
#: `run(options) -> exit code`; these two modules are imported only if the command is given.
COMMANDS = {
    "init": "write a first configuration, and the SQL that prepares the database",
    "check": "show what is right and wrong with database, Kafka and Redis, and what to do",
    "status": "show how far a pipeline is, and what needs attention",
    "dump": "take, download and delete dumps, or print one as records of a format",
    "backfill": "load tables into the stream",
    "tail": "print changes as they are published",
    "sql": "print changes as SQL, as they are published",
    "deadletter": "show, replay or discard changes that could not be published",
    "pipeline": "make a pipeline continue elsewhere, or skip a transaction",
    "source": "choose the host that the reader reads from",
    "binlog": "print what binlogs contain, and SQL that undoes it",
    "completion": "print the completion script of a shell",
}
_EPILOG = """\
A command prints results to standard output, everything else to standard error.

exit codes:
  0    done
  1    failed; standard error says why
  2    wrong usage
  130  interrupted

first steps:
  databus init                   write databus.yaml, and the SQL for the database
  databus check                  is everything ready?
  databus status --watch         is the pipeline up to date?
  databus COMMAND --help         options and examples of a command
  databus completion bash > ~/.local/share/bash-completion/completions/databus
"""


def make_parser(configured: Collection[str]) -> argparse.ArgumentParser:
    """Build the parser; only the commands in `configured` get their arguments."""
    parser = argparse.ArgumentParser(
        "databus",
        description="Work with MySQL Databus from the command line.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if name in configured:
            import_module(f"databus_cli.arguments.{name}").configure(command)
    return parser


class _Version(argparse.Action):
    """Prints the version. Importing the package that knows it takes as long as all other imports of `--help`."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        parser.exit(message=f"{version('databus-cli')}\n")
