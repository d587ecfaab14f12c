"""The command line: start, stop and list servers; run the demo."""

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from devstack import jars
from devstack.demo import playground, scenario
from devstack.progress import ProgressDisplay
from devstack.server import KINDS, VARIABLES, DevstackError, Kind
from devstack.stack import Stack

_DESCRIPTION = """\
Real MariaDB, MySQL, Redis, Kafka, a schema registry and PostgreSQL as local processes on 127.0.0.1. Missing programs
are installed into ~/.cache/databus-devstack (or XDG_CACHE_HOME); data, logs, ports and pids are in one folder.
"""
#: the servers that `up` starts if none are named
_DEFAULT = tuple(kind for kind in KINDS if kind not in ("kafka-secure", "postgresql", "prometheus"))
_EXCEPTION = " except kafka-secure, postgresql and prometheus"
_EPILOG = "To use an existing server instead of starting one, set its variable:\n" + "\n".join(
    f"  {variable}={form}" for variable, form in VARIABLES.values()
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = _parser().parse_args(arguments)
    for noisy in ("aiokafka", "asyncmy"):  # they log errors while a broker starts, and warnings about the demo's load
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    try:
        return int(options.run(options))
    except (DevstackError, ExceptionGroup) as error:
        print(f"devstack: {_cause(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _cause(error: Exception) -> DevstackError:
    """Return a DevstackError, or the first in a group. Any other error is a bug and is raised with its traceback."""
    if isinstance(error, ExceptionGroup):
        ours, others = error.split(DevstackError)
        if others or ours is None:
            raise error
        return _cause(ours.exceptions[0])
    if not isinstance(error, DevstackError):
        raise error
    return error


def up(options: argparse.Namespace) -> int:
    """Start servers in parallel, and with `--services` the sample pipeline."""
    failed = _start_servers(options)
    if options.services and not failed:
        playground.start(options.home)
    return 1 if failed else 0


def _start_servers(options: argparse.Namespace) -> bool:
    """Start servers; if one fails, the others keep running. Returns whether one has failed."""
    failures = []
    with ProgressDisplay() as progress, ThreadPoolExecutor(len(KINDS)) as pool:
        stack = Stack(options.home, progress.say)
        for start in [pool.submit(_start, stack, kind, progress) for kind in options.kinds]:
            try:
                start.result()
            except DevstackError as error:
                failures.append(error)
    for failure in failures:
        print(f"devstack: {failure}", file=sys.stderr)
    return bool(failures)


def _start(stack: Stack, kind: Kind, progress: ProgressDisplay) -> None:
    try:
        stack.start(kind)
    finally:
        progress.done(kind)


def down(options: argparse.Namespace) -> int:
    """Stop this folder's services, and its servers of the given kinds, also those of demos and test sessions."""
    playground.stop(options.home)
    tests = sorted((options.home / "tests").glob("*/"))
    with ProgressDisplay() as progress, ThreadPoolExecutor(len(KINDS)) as pool:
        for home in (options.home, scenario.servers_folder(options.home), *tests):
            for _ in pool.map(Stack(home, progress.say).stop, options.kinds):
                pass
    return 0


def status(options: argparse.Namespace) -> int:
    """Print a table of all servers."""
    table = Table("server", "state", "pid", "address", "log")
    for entry in Stack(options.home).status():
        server, log = entry.server, options.home / entry.kind / "server.log"
        state = "stopped" if not server else "running" if entry.pid else f"from {VARIABLES[entry.kind][0]}"
        address = f"{server.host}:{server.port}" if server else ""
        table.add_row(entry.kind, state, str(entry.pid or ""), address, str(log) if entry.pid else "")
    Console().print(table)
    return 0


def env(options: argparse.Namespace) -> int:
    """Print one `export` line for each running server whose address a variable can name."""
    for entry in Stack(options.home).status():
        if entry.server and entry.kind in VARIABLES:
            print(f"export {VARIABLES[entry.kind][0]}={shlex.quote(entry.server.url)}")
    return 0


def copy_jars(options: argparse.Namespace) -> int:
    """Download the jars of a pom, unless the cache has them, and print their folder."""
    with ProgressDisplay() as progress:
        folder = jars.resolve(options.pom, lambda text: progress.say("jars", text))
    print(folder)
    return 0


def _kind(name: str) -> Kind:
    for kind in KINDS:
        if name == kind:
            return kind
    raise argparse.ArgumentTypeError(f"there is no server {name!r}; use {', '.join(KINDS)}")


def _parser() -> argparse.ArgumentParser:
    home = Path(os.environ.get("DEVSTACK_HOME", ".devstack"))
    parser = argparse.ArgumentParser(
        "devstack", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    text = "folder for all state (default: $DEVSTACK_HOME or .devstack)"
    parser.add_argument("--home", type=Path, default=home, help=text)
    common = argparse.ArgumentParser(add_help=False)  # --home is allowed before and after the command
    common.add_argument("--home", type=Path, default=argparse.SUPPRESS, help=text)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, text, kinds, exception in (
        ("up", up, "start servers and leave them running; running ones are kept", _DEFAULT, _EXCEPTION),
        ("down", down, "stop servers, by default all, and the services; data is kept", KINDS, ""),
    ):
        command = commands.add_parser(name, help=text, description=text, parents=[common])
        servers = f"any of {', '.join(KINDS)} (default: all{exception})"
        command.add_argument("kinds", nargs="*", type=_kind, default=kinds, metavar="SERVER", help=servers)
        command.set_defaults(run=run)
        if run is up:
            help_services = "also start the four services, with a sample shop as their source"
            command.add_argument("--services", action="store_true", help=help_services)
    text = "run all services on a shop under load, then compare every row of the lake with the database"
    command = commands.add_parser("demo", help=text, description=text, parents=[common])
    command.add_argument(
        "--transactions", type=int, default=3000, metavar="N", help="transactions of the load (default: %(default)s)"
    )
    command.set_defaults(run=lambda options: 0 if scenario.run(options.home, options.transactions) else 1)
    text = "list the servers with state and address"
    commands.add_parser("status", help=text, description=text, parents=[common]).set_defaults(run=status)
    text = 'print `export NAME=value` for each running server: eval "$(devstack env)"'
    commands.add_parser("env", help=text, description=text, parents=[common]).set_defaults(run=env)
    text = "download the runtime jars of a Maven pom into the cache and print their folder"
    command = commands.add_parser("jars", help=text, description=text, parents=[common])
    command.add_argument("pom", type=Path, metavar="POM", help="a pom.xml")
    command.set_defaults(run=copy_jars)
    return parser


if __name__ == "__main__":
    sys.exit(main())
