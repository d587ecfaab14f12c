"""Starts services without waiting for their imports: a process that has imported their programs forks each service.

A service costs 0.7 s of CPU until it has imported its libraries, and the tests start hundreds. Only
spark-sink is imported after the fork. What is forked is a process of its own, with the arguments, environment, session
and log that `devstack.process.spawn` would give it.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from types import TracebackType
from typing import Self

from devstack.process import ENVIRONMENT, Process, spawn

_PRELOADED = ("databus-reader", "databus-publisher", "databus-dump-api")
#: what services import when they first need it
_NEEDED_LATER = (
    "databus_changes.ddl.tokens",
    "uvicorn.lifespan.off",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
)


class ForkServer:
    """A context manager that runs the process which forks the services."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # closes its input, and then it ends

    def spawn(self, command: list[str], log: Path) -> Process:
        """Start a service's program in its own session, with its output appended to the log."""
        return Process.of(self._ask(command, log, wait=False))

    def run(self, *command: str | Path) -> tuple[int, str]:
        """Run a service's program to its end; return its exit code and its output. Nothing else starts meanwhile."""
        with NamedTemporaryFile("r") as log:
            return self._ask([*map(str, command)], Path(log.name), wait=True), log.read()

    def _ask(self, command: list[str], log: Path, *, wait: bool) -> int:
        assert self._process.stdin and self._process.stdout
        with self._lock:
            self._process.stdin.write(json.dumps([command, str(log), wait]) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())


def with_environment(variables: Mapping[str, str]) -> Callable[[list[str], Path], Process]:
    """Return a function that starts programs with these environment variables, without a fork."""
    added = ["/usr/bin/env", *(f"{name}={value}" for name, value in variables.items())]
    return lambda command, log: spawn([*added, *command], log)


def _serve() -> None:
    for service in _PRELOADED:
        _main_of(service)
    for module in _NEEDED_LATER:
        import_module(module)
    gc.freeze()  # otherwise the first garbage collection of each service would copy all pages
    for line in sys.stdin:
        _reap()
        command, log, wait = json.loads(line)
        if pid := os.fork():
            answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if wait else pid
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()
        else:
            _become(command, log)
            _main_of(Path(command[0]).name)()
            return


def _main_of(program: str) -> Callable[[], None]:
    return import_module(f"{program.replace('-', '_')}.__main__").main


def _reap() -> None:
    """Remove ended services. Called only before a fork, so that `Process.of` finds a service that ends at once."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(command: list[str], log: str) -> None:
    os.setsid()
    sys.argv = command
    null, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for ours, inherited in ((null, 0), (output, 1), (output, 2)):
        os.dup2(ours, inherited)
    os.close(null)
    os.close(output)


if __name__ == "__main__":
    _serve()
