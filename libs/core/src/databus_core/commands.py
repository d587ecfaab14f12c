"""Commands of a service's program: `databus-SERVICE COMMAND` does something else than running the service."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from databus_core.errors import DatabusError
from databus_core.settings import Settings, load


@dataclass(frozen=True)
class Command:
    """What a program can do beside running its service."""

    name: str
    #: one sentence, for `--help`
    summary: str
    description: str
    #: adds the arguments
    configure: Callable[[argparse.ArgumentParser], None]
    #: does the work, and returns the exit code
    run: Callable[[Settings, argparse.Namespace], int]


def add_commands(parser: argparse.ArgumentParser, commands: Sequence[Command]) -> None:
    """Add commands to the parser of a program, which has the option `--config`."""
    if not commands:
        return
    added = parser.add_subparsers(title="commands", metavar="COMMAND", description="without one, the service runs")
    parser.set_defaults(command=None)
    for command in commands:
        each = added.add_parser(command.name, help=command.summary, description=command.description)
        each.set_defaults(command=command, prog=each.prog)
        each.add_argument(
            # Without a default: that of the program's own option counts, or its value.
            "--config", type=Path, default=argparse.SUPPRESS, metavar="FILE", help="configuration file"
        )  # fmt: skip
        command.configure(each)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the command that was given, and return the exit code: 2 after a wrong usage, 130 if it was interrupted."""
    try:
        return int(arguments.command.run(load(arguments.config), arguments))
    except DatabusError as error:
        for fault in str(error).splitlines():
            sys.stderr.write(f"{arguments.prog}: {fault}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
