"""The command line: start, stop and show the servers of a folder."""

import argparse
import asyncio
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
from devstack.demo import playground, story
from devstack.progress import Progress
from devstack.server import KINDS, VARIABLES, DevstackError, Kind
from devstack.stack import Stack

_DESCRIPTION = """\
Real MariaDB, MySQL, Redis, Kafka and a schema registry as local processes on 127.0.0.1. What is missing is installed
into ~/.cache/databus-devstack (XDG_CACHE_HOME is honoured); data, logs, ports and pids are in one folder.
"""
_SERVERS = f"any of {', '.join(KINDS)}; without a name all of them"
_EPILOG = "A server given by one of these variables is used instead of starting one:\n" + "\n".join(
    f"  {variable}={form}" for variable, form in VARIABLES.values()
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = _parser().parse_args(arguments)
    for noisy in ("aiokafka", "asyncmy"):  # complaints about a broker that is just starting, warnings of the load
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    try:
        return int(options.run(options))
    except (DevstackError, ExceptionGroup) as error:
        print(f"devstack: {_cause(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _cause(error: Exception) -> DevstackError:
    """Find the error of ours that ended a group of tasks; anything else is a defect and shows where it came from."""
    if isinstance(error, ExceptionGroup):
        ours, others = error.split(DevstackError)
        if others or ours is None:
            raise error
        return _cause(ours.exceptions[0])
    if not isinstance(error, DevstackError):
        raise error
    return error


def up(options: argparse.Namespace) -> int:
    """Start servers side by side, and the services where they are asked for."""
    return _start_servers(options) or (_start_services(options) if options.services else 0)


def _start_services(options: argparse.Namespace) -> int:
    """Start the sample pipeline over the servers and print where everything is."""
    with Progress() as progress:
        progress.say("services", "starting reader, publisher, dump-api and spark-sink")
        pipeline = asyncio.run(playground.start(Stack(options.home), options.home))
        progress.say("services", "ready")
    table = Table("", "address")
    for name, address in playground.addresses(pipeline).items():
        table.add_row(name, address)
    Console().print(table)
    return 0


def run_demo(options: argparse.Namespace) -> int:
    """Run the demo in a folder of its own, with servers of its own."""
    console, stack = Console(), Stack(story.servers(options.home))
    try:
        outcome = asyncio.run(story.Demo(stack, story.pipeline(options.home), console).run(options.transactions))
    finally:
        for kind in KINDS:
            stack.stop(kind)
    story.show(outcome, console)
    return 0 if outcome.equal else 1


def _start_servers(options: argparse.Namespace) -> int:
    """Start servers; those that start stay, also when another one fails."""
    failures = []
    with Progress() as progress, ThreadPoolExecutor(len(KINDS)) as pool:
        stack = Stack(options.home, progress.say)
        for start in [pool.submit(_start, stack, kind, progress) for kind in options.kinds]:
            try:
                start.result()
            except DevstackError as error:
                failures.append(error)
    for failure in failures:
        print(f"devstack: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _start(stack: Stack, kind: Kind, progress: Progress) -> None:
    try:
        stack.start(kind)
    finally:
        progress.done(kind)


def down(options: argparse.Namespace) -> int:
    """Stop the services and servers of this folder, also those of a demo or a test session that was killed."""
    playground.stop(options.home)
    tests = sorted((options.home / "tests").glob("*/"))
    with Progress() as progress, ThreadPoolExecutor(len(KINDS)) as pool:
        for home in (options.home, story.servers(options.home), *tests):
            for _ in pool.map(Stack(home, progress.say).stop, options.kinds):
                pass
    return 0


def status(options: argparse.Namespace) -> int:
    """Print a table of all kinds of server."""
    table = Table("server", "state", "pid", "address", "log")
    for entry in Stack(options.home).status():
        server, log = entry.server, options.home / entry.kind / "server.log"
        state = "stopped" if not server else "running" if entry.pid else f"given by {VARIABLES[entry.kind][0]}"
        address = f"{server.host}:{server.port}" if server else ""
        table.add_row(entry.kind, state, str(entry.pid or ""), address, str(log) if entry.pid else "")
    Console().print(table)
    return 0


def env(options: argparse.Namespace) -> int:
    """Print one line of shell for each running server."""
    for entry in Stack(options.home).status():
        if entry.server:
            print(f"export {VARIABLES[entry.kind][0]}={shlex.quote(entry.server.url)}")
    return 0


def copy_jars(options: argparse.Namespace) -> int:
    """Print the folder that holds the jars of a pom."""
    with Progress() as progress:
        folder = jars.resolve(options.pom, lambda text: progress.say("jars", text))
    print(folder)
    return 0


def _kind(name: str) -> Kind:
    for kind in KINDS:
        if name == kind:
            return kind
    raise argparse.ArgumentTypeError(f"there is no server {name!r}; there are {', '.join(KINDS)}")


def _parser() -> argparse.ArgumentParser:
    home = Path(os.environ.get("DEVSTACK_HOME", ".devstack"))
    parser = argparse.ArgumentParser(
        "devstack", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    text = "folder of all state (default: $DEVSTACK_HOME or .devstack)"
    parser.add_argument("--home", type=Path, default=home, help=text)
    common = argparse.ArgumentParser(add_help=False)  # --home may stand before or after the command
    common.add_argument("--home", type=Path, default=argparse.SUPPRESS, help=text)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, text in (
        ("up", up, "start servers and leave them running; those that run are kept"),
        ("down", down, "stop the servers that `up` started here; their data is kept"),
    ):
        command = commands.add_parser(name, help=text, description=text, parents=[common])
        command.add_argument("kinds", nargs="*", type=_kind, default=KINDS, metavar="SERVER", help=_SERVERS)
        command.set_defaults(run=run)
        if run is up:
            help_services = "start the four services too, over a sample shop"
            command.add_argument("--services", action="store_true", help=help_services)
    text = "run the whole pipeline on a shop under load and prove the lake equal to it"
    command = commands.add_parser("demo", help=text, description=text, parents=[common])
    command.add_argument(
        "--transactions", type=int, default=3000, metavar="N", help="of the load (default: %(default)s)"
    )
    command.set_defaults(run=run_demo)
    text = "show which servers run, and where"
    commands.add_parser("status", help=text, description=text, parents=[common]).set_defaults(run=status)
    text = 'print `export NAME=value` for each running server: eval "$(devstack env)"'
    commands.add_parser("env", help=text, description=text, parents=[common]).set_defaults(run=env)
    text = "fetch the runtime jars of a Maven pom into the cache and print their folder"
    command = commands.add_parser("jars", help=text, description=text, parents=[common])
    command.add_argument("pom", type=Path, metavar="POM", help="a pom.xml")
    command.set_defaults(run=copy_jars)
    return parser


if __name__ == "__main__":
    sys.exit(main())
