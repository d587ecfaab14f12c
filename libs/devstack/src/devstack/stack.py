"""The stack: one instance of each kind of server, with all state in one folder."""

import asyncio
import json
import secrets
import shutil
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from devstack.cache import locked
from devstack.engine import Engine, Instance
from devstack.kafka import Kafka
from devstack.kafka_secure import SecureKafka
from devstack.mariadb import MariaDB
from devstack.mysql import MySQL
from devstack.ports import HOST, free_ports, is_free
from devstack.postgresql import PostgreSQL
from devstack.process import Process, spawn, tail
from devstack.prometheus import Prometheus
from devstack.redis import Redis
from devstack.registry import Registry
from devstack.server import KINDS, VARIABLES, DevstackError, Kind, NotReadyError, Server, at, given

_KNOWN: tuple[Engine, ...] = (
    MariaDB(),
    MySQL(),
    Redis(),
    Kafka(),
    SecureKafka(),
    Registry(),
    PostgreSQL(),
    Prometheus(),
)
_ENGINES = {engine.kind: engine for engine in _KNOWN}
#: Free bytes that a new server needs: on a full disk a server waits forever, and its clients with it.
_FREE_BYTES = 2 * 2**30


@dataclass(frozen=True, kw_only=True)
class Status:
    """The state of a server: running (with a pid), named by the environment (without a pid), or stopped (no server)."""

    kind: Kind
    server: Server | None
    pid: int | None


class Stack:
    """The servers whose state is in the folder `home`.

    All methods block. They may be called from a thread or from inside a running event loop; use
    `await asyncio.to_thread(stack.restart, "redis")` if the loop must continue meanwhile.
    `progress` is called with the kind and a few words about the current step.
    With `own`, servers that the environment names are ignored. A new server that has accounts gets one with
    `password`, by default a random password.
    """

    def __init__(
        self,
        home: Path,
        progress: Callable[[Kind, str], None] = lambda _kind, _text: None,
        *,
        own: bool = False,
        password: str = "",
    ) -> None:
        self.home = home.resolve()
        self._password = password
        self._progress = progress
        self._own = own

    def start(self, kind: Kind, *options: str) -> Server:
        """Return a server of this kind that answers: the one the environment names, or the stack's own.

        The stack's own server is started if it does not run, with `options` added to its command line.
        """
        say, engine, server = partial(self._progress, kind), _ENGINES[kind], self._given(kind)
        if server:
            _blocking(_require_given_answers(engine, server))
            say(f"named by {VARIABLES[kind][0]}")
            return server
        with locked(self.home / f"{kind}.lock"):
            process = self._process(kind)
            if not process:
                installation = engine.install(say)
                instance = self._make_instance(engine, installation)
                say("starting")
                process = spawn([*engine.command(installation, instance), *options], self._log(kind))
                process.save(self._pid_file(kind))
            server = self._server(engine)
            _blocking(self._until_ready(engine, server, process))
            say(f"ready on {server.host}:{server.port}")
            return server

    def stop(self, kind: Kind) -> bool:
        """Stop the server gracefully. Returns False if this stack has none that runs."""
        return self._end(kind, lambda process: process.end(grace=30))

    def kill(self, kind: Kind) -> bool:
        """Kill the server with SIGKILL. Returns False if this stack has none that runs.

        Raises DevstackError if the environment names the server.
        """
        if self._given(kind):
            raise DevstackError(
                f"{kind} is named by {VARIABLES[kind][0]}: devstack did not start it and cannot kill it"
            )
        return self._end(kind, Process.kill)

    def discard(self) -> None:
        """Kill all servers (some take long to stop) and remove their data; the next start makes new servers."""
        for kind in KINDS:
            self._end(kind, Process.kill)
            (self.home / kind / "instance.json").unlink(missing_ok=True)
            shutil.rmtree(self.home / kind / "data", ignore_errors=True)

    def restart(self, kind: Kind, *options: str) -> Server:
        """Kill the server and start it again with the same data and port, and with these options."""
        self.kill(kind)
        return self.start(kind, *options)

    def ports(self, kind: Kind) -> tuple[int, ...]:
        """Return all ports of a server of this stack, in the order of `Instance.ports`."""
        return tuple(json.loads((self.home / kind / "instance.json").read_text())["ports"])

    def status(self) -> list[Status]:
        """Return the state of each kind of server, without connecting to it."""
        return [self._status(kind) for kind in KINDS]

    def _status(self, kind: Kind) -> Status:
        process, server = self._process(kind), self._given(kind)
        if server or not process:
            return Status(kind=kind, server=server, pid=None)
        return Status(kind=kind, server=self._server(_ENGINES[kind]), pid=process.pid)

    def _end(self, kind: Kind, end: Callable[[Process], None]) -> bool:
        with locked(self.home / f"{kind}.lock"):
            process = self._process(kind)
            if not process:
                return False
            self._progress(kind, "stopping")
            end(process)
            self._pid_file(kind).unlink()
            self._progress(kind, "stopped")
            return True

    def _given(self, kind: Kind) -> Server | None:
        return None if self._own else given(kind)

    def _process(self, kind: Kind) -> Process | None:
        process = Process.load(self._pid_file(kind))
        return process if process and process.alive else None

    def _pid_file(self, kind: Kind) -> Path:
        return self.home / kind / "process.json"

    def _log(self, kind: Kind) -> Path:
        return self.home / kind / "server.log"

    def _make_instance(self, engine: Engine, installation: Path) -> Instance:
        """Read or create the instance. Its ports stay the same unless another process has taken them meanwhile."""
        folder = self.home / engine.kind
        kept = folder / "instance.json"
        saved = json.loads(kept.read_text()) if kept.exists() else {}
        if not saved:  # a new server, or the creation was interrupted: then the folder has incomplete data
            self._require_disk_space()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, mode=0o700)
            template = installation / "data"
            shutil.copytree(template, folder / "data") if template.exists() else (folder / "data").mkdir()
        ports = tuple(saved.get("ports", ()))
        count = engine.ports + engine.proxies
        if len(ports) != count or not all(is_free(port) for port in ports[: engine.ports]):
            ports = free_ports(count)
        instance = Instance(folder, ports, saved.get("password") or self._password or secrets.token_urlsafe(12))
        kept.write_text(json.dumps({"ports": instance.ports, "password": instance.password}))
        return instance

    def _require_disk_space(self) -> None:
        free = shutil.disk_usage(self.home).free
        if free < _FREE_BYTES:
            raise DevstackError(
                f"the disk of {self.home} has {free / 2**30:.1f} GiB left, and a new server needs "
                f"{_FREE_BYTES / 2**30:.0f} GiB: free some space"
            )

    def _server(self, engine: Engine) -> Server:
        saved = json.loads((self.home / engine.kind / "instance.json").read_text())
        password = saved["password"] if engine.user else ""
        return at(engine.kind, HOST, saved["ports"][0], engine.user, password)

    async def _until_ready(self, engine: Engine, server: Server, process: Process) -> None:
        """Wait until the server answers. Raises DevstackError with its last log lines if it ends or takes too long."""
        reason = "its port accepts connections, but no request is answered"
        try:
            async with asyncio.timeout(engine.timeout):
                while process.alive:
                    try:
                        return await engine.ping(server)
                    except NotReadyError as error:
                        reason = str(error)
                    await asyncio.sleep(0.1)
            what = "ended while starting"
        except TimeoutError:
            what = f"does not answer after {engine.timeout:.0f} s ({reason})"
        log = self._log(engine.kind)
        raise DevstackError(f"{engine.kind} {what}; the end of {log}:\n{tail(log)}")


async def _require_given_answers(engine: Engine, server: Server) -> None:
    """Raise DevstackError unless the server that the environment names answers."""
    try:
        await engine.ping(server)
    except NotReadyError as error:
        variable = VARIABLES[engine.kind][0]
        raise DevstackError(
            f"{variable}: {server.host}:{server.port} does not answer: {error}; "
            "start that server, or unset the variable to start one here"
        ) from error


def _blocking(work: Coroutine[None, None, None]) -> None:
    """Run a coroutine to its end, in another thread because the caller's may have a running event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()
