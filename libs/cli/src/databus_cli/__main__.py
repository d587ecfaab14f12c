"""`databus COMMAND`. Exit codes: 0 done, 1 failed and standard error says why, 2 wrong usage, 130 interrupted."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from databus_cli.terminal import notice
from databus_core.errors import DatabusError, UsageError

#: command → help. `databus_cli.arguments.NAME` has the arguments of a command, `databus_cli.NAME` its
#: `run(options) -> exit code`; these two modules are imported only if the command is given.
_COMMANDS = {
    "binlog": "print what binlogs contain, and SQL that undoes it",
    "backfill": "load tables into the stream",
    "dump": "read dumps",
    "deadletter": "show and replay changes that could not be published",
    "pipeline": "show a pipeline's state, and make it continue elsewhere or skip a transaction",
    "source": "choose the host that the reader reads from",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments).parse_args(arguments)
    run = import_module(f"databus_cli.{options.command}").run
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # its errors reach us as exceptions
    from databus_binlog import BinlogError  # not at the top: `--help` and `--version` do not need it

    try:
        return int(run(options))
    except BrokenPipeError:
        # The program that read the output has ended. Flushing the rest of the buffer at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        notice(str(error))
        return 2
    except (DatabusError, BinlogError) as error:
        for fault in str(error).splitlines():
            notice(fault)
    except OSError as error:
        notice(f"{error.filename or 'output'}: {error.strerror}")
    except KeyboardInterrupt:
        return 130
    return 1


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("databus", description="Work with MySQL Databus from the command line.")
    parser.add_argument("--version", action="version", version=version("databus-cli"))
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    chosen = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if name == chosen:
            import_module(f"databus_cli.arguments.{name}").configure(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
