"""What every service does the same way: command line, logging, health and metrics over HTTP, retries, exit codes.

`serve` runs the service's work until it ends, fails for good, or the process is told to stop. On SIGTERM or SIGINT the
work is cancelled and has `terminationGracePeriodSeconds` (30 s in Kubernetes) to leave: it ends the step it is at, and
what it had not committed then is read again by its successor.
"""

import argparse
import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from databus.errors import DatabusError, InvalidSettings, RetryableError
from databus.settings import Settings, add_config, load

log = logging.getLogger("databus")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
#: longer than any client of ours takes to disconnect, and well below Kubernetes' 30 s
_STOP_SECONDS = 8.0
#: Every wait for a neighbour has a shorter limit: work that takes no step for so long is stuck.
_STUCK_SECONDS = 300.0


@dataclass
class Health:
    """What /readyz and /healthz answer.

    A neighbour that is away makes a service not ready; not alive it is when its work hangs.
    """

    ready: bool = False
    reason: str = "starting"
    #: when it became ready, on the monotonic clock
    since: float = 0.0
    #: when the work took its last step, on the monotonic clock; None for work that does not tell
    step: float | None = None

    def up(self, reason: str = "ok") -> None:
        """Say that the service does its work, or stands by to do it."""
        if not self.ready:
            self.since = time.monotonic()
        self.ready, self.reason = True, reason

    def down(self, reason: str) -> None:
        """Say that the service cannot do its work, and why."""
        self.ready, self.reason = False, reason

    def beat(self) -> None:
        """Say that the work takes a step, if only to see that there is nothing to do."""
        self.step = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether the work, as far as it tells, takes steps."""
        return self.step is None or time.monotonic() - self.step < _STUCK_SECONDS


Work: TypeAlias = Callable[[Settings, Health], Coroutine[Any, Any, None]]


def main(
    name: str,
    *,
    listen: Callable[[Settings], str],
    run: Work,
    check: Work,
    until_idle: Work | None = None,
    app: Callable[..., ASGIApp] | None = None,
) -> None:
    """Run a service as a program and exit.

    `listen` picks its HTTP address, `run` is its work, `check` validates and connects only (for `--check`),
    `until_idle` is the work that ends by itself (for `--until-idle`), and `app` builds its HTTP application from
    (settings, health) where it has more to serve than health and metrics.
    """
    parser = argparse.ArgumentParser(prog=f"databus-{name}")
    add_config(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="validate the configuration, connect to the neighbours, and exit",
    )
    if until_idle:
        parser.add_argument("--until-idle", action="store_true", help="do what there is to do now, and exit")
    parser.add_argument("--version", action="version", version=version("databus-core"))
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s %(levelname)-7s {name} %(message)s", stream=sys.stderr)
    for library in ("aiokafka", "asyncmy", "httpx", "py4j", "uvicorn.error"):
        # What these report as errors reaches us as exceptions, and is told once, in our words.
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        settings = load(arguments.config)
        health = Health()
        if arguments.check:
            asyncio.run(check(settings, health))
            sys.stdout.write(f"databus-{name}: ready\n")
        else:
            http = app(settings, health) if app else Starlette(routes=health_routes(health))
            work = until_idle if until_idle and arguments.until_idle else run
            asyncio.run(serve(listen(settings), work, settings, health, http))
    except DatabusError as error:
        for line in str(error).splitlines():
            log.error("%s", line)
        sys.exit(error.exit_code)


async def serve(listen: str, run: Work, settings: Settings, health: Health, http: ASGIApp) -> None:
    """Serve HTTP and do the work until it ends or a signal comes. Raises the work's final error."""
    server = _Server(
        uvicorn.Config(http, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5)
    )
    with _listening(listen) as bound:
        web = asyncio.create_task(server.serve(sockets=[bound]))
        work = asyncio.create_task(_retrying(run, settings, health))
        told = asyncio.Event()
        for stop in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(stop, told.set)
        try:
            await _until_ended(work, told)
            log.info("stopped")
        finally:
            health.down("stopping")
            server.should_exit = True
            await web


async def _until_ended(work: "asyncio.Task[None]", told: asyncio.Event) -> None:
    """Wait for the end of the work; cancel it when told to stop. Raises the work's error."""
    waiting = asyncio.create_task(told.wait())
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    while not work.done():
        work.cancel()  # more than once: a client that is disconnecting may take it for one of its own
        await asyncio.wait({work}, timeout=_STOP_SECONDS)
    if not work.cancelled():
        work.result()


async def _retrying(run: Work, settings: Settings, health: Health) -> None:
    """Do the work again with growing pauses for as long as its neighbours are away."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return await run(settings, health)
        except RetryableError as error:
            reason = str(error)
        except asyncio.CancelledError:
            reason = "a connection ended by itself"  # aiokafka tells so when one closes while it is set up
        if (task := asyncio.current_task()) and task.cancelling():
            raise asyncio.CancelledError
        if health.ready and time.monotonic() - health.since > pause:  # what fails at once each time is no recovery
            pause = _FIRST_PAUSE
        health.down(reason)
        health.beat()
        log.warning("%s; next try in %.1f s", reason, pause)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def uninterrupted(step: Coroutine[Any, Any, None]) -> None:
    """Run a step to its end though we are told to stop meanwhile, and stop then; told again, stop at once."""
    task = asyncio.ensure_future(step)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()):
            log.warning("while stopping: %s", error)
        raise
    finally:
        if task.cancel():
            await asyncio.wait({task})


def health_routes(health: Health) -> list[BaseRoute]:
    """Liveness, readiness and metrics, for any Starlette application."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n" if health.alive else "stuck\n", status_code=200 if health.alive else 503)

    async def readyz(_: Request) -> Response:
        return PlainTextResponse(f"{health.reason}\n", status_code=200 if health.ready else 503)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]


@contextmanager
def _listening(address: str) -> Iterator[socket.socket]:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, int(port)), family=family)
    except OSError as error:
        raise InvalidSettings(f"listen: cannot bind {address}: {error.strerror}") from error
    with bound:
        yield bound


class _Server(uvicorn.Server):
    """A uvicorn that leaves the signals to `serve`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
