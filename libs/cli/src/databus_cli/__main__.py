"""`databus COMMAND`. Exit codes: 0 done, 1 failed with one line that says why, 2 wrong usage, 130 interrupted."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from databus.errors import DatabusError
from databus_binlog import BinlogError
from databus_cli import binlog, deadletter, dump, source
from databus_cli.terminal import tell

#: Each has `add(commands)`, which adds its parser with a default `run(options) -> exit code`.
_COMMANDS = (binlog, dump, deadletter, source)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:
        # Whoever read the output has seen enough. What is still buffered must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (DatabusError, BinlogError) as error:
        tell(str(error))
    except OSError as error:
        tell(f"{error.filename or 'output'}: {error.strerror}")
    except KeyboardInterrupt:
        return 130
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("databus", description="Work with MySQL Databus from the command line.")
    parser.add_argument("--version", action="version", version=version("databus"))
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
