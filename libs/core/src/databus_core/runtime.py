"""What all services share: command line, logging, health and metrics over HTTP, retries, exit codes.

`serve` runs the service's work until it ends or fails with an error that is not a RetryableError, or until the process
receives SIGTERM or SIGINT. A signal cancels the work. A step in `uninterrupted` then has 8 s to finish before it is
cancelled, too. The next process reads again what was not committed by then.
"""

import argparse
import asyncio
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeAlias, TypeVar

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from databus_core import logs
from databus_core.cancellation import raise_if_cancelled
from databus_core.commands import Command, add_commands, run_command
from databus_core.config_option import add_config
from databus_core.errors import DatabusError, InvalidSettings, KafkaUnavailable, LeadershipLost, RetryableError
from databus_core.log_events import LogEvent
from databus_core.metrics.common import READY, RETRIES
from databus_core.metrics.exposition import Service, exposition
from databus_core.outages import Outages
from databus_core.settings import Log, Settings, load
from databus_core.tracing import flushed_spans

log = logs.get_logger(__name__)
_T = TypeVar("_T")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
#: longest pause while the storage of the lease is unavailable: a replica that pauses cannot take over
_LONGEST_LEASE_PAUSE = 2.0
_LEASE_STORAGES = ("redis", "kubernetes")
#: pause until the work is cancelled again: a client may have swallowed the first cancellation, or a step may hang. The
#: pause is well below the 30 s that Kubernetes waits.
_STOP_SECONDS = 8.0
#: time without a step after which the work counts as stuck: all timeouts for dependencies are shorter by default
_STUCK_SECONDS = 300.0


@dataclass
class Health:
    """The state of a service, for /readyz and /healthz.

    A service is not ready while a dependency that it needs now is unavailable. If its work reports steps, it is not
    alive after 300 s without one.
    """

    ready: bool = False
    reason: str = "starting"
    #: what does not work although it is ready; empty: nothing
    degraded: str = ""
    #: whether another replica was active when the service last looked
    is_standby: bool = False
    #: whether it has reached all that it depends on, at least once
    has_reached: bool = False
    #: when it became ready, on the monotonic clock
    since: float = 0.0
    #: how long it was ready without a break, at most, since this was last set to 0, in seconds
    longest: float = 0.0
    #: when the work took its last step, on the monotonic clock; None if the work does not report steps
    step: float | None = None
    #: dependencies that are unavailable
    outages: Outages = field(default_factory=Outages)

    def up(self, *, host: str = "") -> None:
        """Report that the service works, so all its dependencies are available.

        If a `host` is given, the other hosts of the source may still be unavailable.
        """
        self._set_ready("ok")
        self.has_reached = True
        self.outages.back(host=host)

    def stand_by(self, reason: str) -> None:
        """Report that the service is ready to take over. It goes on to reach Redis and the storage of the lease."""
        self.is_standby = True
        self._set_ready(reason)
        self.outages.back(among=_LEASE_STORAGES)

    def prepare(self, reason: str) -> None:
        """Report that the service is a standby that cannot take over yet, and why."""
        self.is_standby = True
        self.down(reason)

    def take_over(self, role: str) -> None:
        """Report that this is the active replica from now on. It is ready when it works."""
        self.is_standby = False
        self.down(f"becoming the active {role}")

    def _set_ready(self, reason: str) -> None:
        if not self.ready:
            self.since = time.monotonic()
        self.ready, self.reason = True, reason

    def down(self, reason: str) -> None:
        """Report that the service cannot work, and why."""
        if self.ready:
            self.longest = max(self.longest, time.monotonic() - self.since)
        self.ready, self.reason = False, reason

    def beat(self) -> None:
        """Report that the work has taken a step, even if there was nothing to do."""
        self.step = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether the work still takes steps; true for work that does not report them."""
        return self.step is None or time.monotonic() - self.step < _STUCK_SECONDS


Work: TypeAlias = Callable[[Settings, Health], Coroutine[Any, Any, None]]


def main(
    name: Service,
    *,
    listen: Callable[[Settings], str],
    run: Work,
    check: Work,
    until_idle: Work | None = None,
    app: Callable[..., ASGIApp] | None = None,
    commands: Sequence[Command] = (),
) -> None:
    """Run a service as a program; after an error, exit with its code.

    `listen` selects the service's HTTP address, `run` is its work, `check` validates and connects (for `--check`),
    `until_idle` is work that ends when there is nothing left to do (for `--until-idle`). A service that serves more
    than health and metrics has an `app`, which builds its HTTP application from (settings, health). If one of the
    `commands` is given, the program runs that instead of the service.
    """
    parser = argparse.ArgumentParser(prog=f"databus-{name}")
    add_config(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="validate the configuration, connect to the dependencies, and exit",
    )
    if until_idle:
        parser.add_argument("--until-idle", action="store_true", help="do all work there is now, and exit")
    parser.add_argument("--version", action="version", version=version("databus-core"))
    add_commands(parser, commands)
    arguments = parser.parse_args()
    if commands and arguments.command:
        sys.exit(run_command(arguments))
    logs.configure(name, Log())
    try:
        settings = load(arguments.config)
        logs.configure(name, settings.log, pipeline=settings.name)
        health = Health()
        with flushed_spans():
            if arguments.check:
                asyncio.run(_supervised(check(settings, health)))
                sys.stdout.write(f"databus-{name}: ready\n")
            else:
                http = app(settings, health) if app else Starlette(routes=health_routes(health, name, settings.name))
                work = until_idle if until_idle and arguments.until_idle else run
                asyncio.run(_supervised(serve(listen(settings), work, settings, health, http)))
    except DatabusError as error:
        for line in str(error).splitlines():
            log.error(LogEvent.FAILED, line, **error.fields)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001  # Python would write the error's message, which may quote a row
        log.error(LogEvent.CRASHED, "an unknown error ended the service", cause=error, error=type(error).__name__)
        sys.exit(1)


async def _supervised(work: Coroutine[Any, Any, None]) -> None:
    """Do the work; errors of tasks that nothing waits for are logged."""
    asyncio.get_running_loop().set_exception_handler(logs.report_background_error)
    await work


async def serve(listen: str, run: Work, settings: Settings, health: Health, http: ASGIApp) -> None:
    """Serve HTTP and do the work until it ends or a signal arrives. Raises the work's final error."""
    server = _Server(
        uvicorn.Config(http, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5)
    )
    with _listening(listen) as bound:
        log.info(LogEvent.STARTED, "the service starts", version=version("databus-core"), listen=listen)
        web = asyncio.create_task(server.serve(sockets=[bound]))
        work = asyncio.create_task(retrying(run, settings, health))
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        try:
            await _until_ended(work, stop)
            log.info(LogEvent.STOPPED, "the service has stopped")
        finally:
            health.down("stopping")
            server.should_exit = True
            await web


async def _until_ended(work: "asyncio.Task[None]", stop: asyncio.Event) -> None:
    """Wait for the end of the work; cancel it when `stop` is set. Raises the work's error."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    while not work.done():
        work.cancel()  # repeatedly, because a client that is disconnecting may swallow a cancellation
        await asyncio.wait({work}, timeout=_STOP_SECONDS)
    if not work.cancelled():
        work.result()


async def retrying(run: Work, settings: Settings, health: Health) -> None:
    """Do the work; after a RetryableError, do it again, with growing pauses."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return await run(settings, health)
        except RetryableError as raised:
            error = raised
        except asyncio.CancelledError:  # aiokafka cancels our task if a connection is closed while it is being opened
            error = KafkaUnavailable("Kafka is unavailable: it closed a connection (check kafka.bootstrap_servers)")
        raise_if_cancelled()
        health.down(str(error))
        if health.longest > pause:  # it had recovered, if only as a standby
            pause = _FIRST_PAUSE
        health.longest = 0.0
        if health.step is not None:  # work that reports no steps would count as stuck 300 s after a first beat
            health.beat()
        if isinstance(error, LeadershipLost):
            log.warning(LogEvent.LEADERSHIP_LOST, f"{error}; standing by")
            RETRIES.labels(error.dependency, type(error).__name__).inc()
        else:
            health.outages.lost(error)
        longest = _LONGEST_LEASE_PAUSE if error.dependency in _LEASE_STORAGES else _LONGEST_PAUSE
        await asyncio.sleep(min(pause, longest))
        pause = min(pause * 2, longest)


async def uninterrupted(step: Coroutine[Any, Any, _T]) -> _T:
    """Run a step to its end even if the task is cancelled meanwhile; a second cancellation interrupts it."""
    task = asyncio.ensure_future(step)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()):
            log.warning(LogEvent.STEP_FAILED, f"the current step failed while stopping: {_reason(error)}")
        raise
    finally:
        if task.cancel():
            await asyncio.wait({task})


def _reason(error: BaseException) -> str:
    """Return the message of an error of ours, but only the type of any other: its message may quote a row."""
    return str(error) if isinstance(error, DatabusError) else type(error).__name__


def health_routes(health: Health, service: Service, pipeline: str) -> list[BaseRoute]:
    """Return the routes of liveness, readiness and metrics, for any Starlette application."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n" if health.alive else "stuck\n", status_code=200 if health.alive else 503)

    async def readyz(_: Request) -> Response:
        degraded = f"; degraded: {health.degraded}" if health.ready and health.degraded else ""
        return PlainTextResponse(f"{health.reason}{degraded}\n", status_code=200 if health.ready else 503)

    async def metrics(_: Request) -> Response:
        READY.set(health.ready)
        text = exposition(service, pipeline, is_standby=health.is_standby)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

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
    """A uvicorn server that leaves the signals to `serve`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
