"""`databus COMMAND`. Exit codes: 0 done, 1 failed and standard error says why, 2 wrong usage, 130 interrupted."""

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from databus_cli.command_line import make_parser
from databus_cli.terminal import notice
from databus_core.errors import DatabusError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    chosen = [argument for argument in arguments if not argument.startswith("-")][:1]
    options = make_parser(chosen).parse_args(arguments)
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


if __name__ == "__main__":
    sys.exit(main())
