"""The four services as local processes with one configuration."""

import json
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import httpx

from devstack.ports import HOST, free_ports
from devstack.process import Process, spawn, tail
from devstack.server import DevstackError, Server

Service = Literal["reader", "publisher", "dump-api", "spark-sink"]
SERVICES: tuple[Service, ...] = get_args(Service)

_SECTIONS = {"reader": "reader", "publisher": "publisher", "dump-api": "dumps", "spark-sink": "spark"}
_READY_SECONDS = 240  # Spark on two busy cores


class Pipeline:
    """A pipeline whose configuration, logs, dumps and lake are in the folder `home`. All methods block.

    `launch` starts a program, with its output appended to a log.
    """

    def __init__(
        self,
        home: Path,
        *,
        source: Server,
        redis: Server,
        kafka: Server,
        name: str = "shop",
        include: tuple[str, ...] = ("shop.*",),
        overrides: Mapping[str, Mapping[str, Any]] | None = None,
        launch: Callable[[list[str], Path], Process] = spawn,
    ) -> None:
        self.home = home.resolve()
        self.name = name
        self.config = self.home / "databus.yaml"
        self.lake = self.home / "lake"
        self.source, self.redis, self.kafka = source, redis, kafka
        self._launch = launch
        # No CAs are loaded: services listen without TLS, and loading takes longer than hundreds of requests. No
        # connection is kept, because the service may be killed before the next request.
        self._http = httpx.Client(
            timeout=5,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._write_config(include, overrides or {})

    def start_all(self, *services: Service) -> None:
        """Start services in parallel and wait until all are ready; running ones are kept."""
        for service in services:
            if not self.pid(service):
                self.spawn(service)
        for service in services:
            self.wait(service)

    def spawn(self, service: Service, *arguments: str, replica: int = 0) -> Process:
        """Start a service, or another replica of it, without waiting for it."""
        program = Path(sys.executable).parent / f"databus-{service}"
        config = self._config_of(service, replica)
        process = self._launch([str(program), "--config", str(config), *arguments], self.log(service, replica))
        process.save(_pid_file(self.home, service, replica))
        return process

    def wait(self, service: Service, replica: int = 0) -> None:
        """Wait until a service is ready. Raises DevstackError with its last log lines if it ends or takes too long."""
        until = time.monotonic() + _READY_SECONDS
        reason = "it does not listen"
        log = self.log(service, replica)
        while (pid := self.pid(service, replica)) and time.monotonic() < until:
            try:
                answer = self.get(service, "/readyz", replica)
                if answer.status_code == httpx.codes.OK:
                    return
                reason = answer.text.strip()
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        what = f"is not ready after {_READY_SECONDS} s ({reason})" if pid else "ended"
        raise DevstackError(f"{service} {what}; the end of {log}:\n{tail(log)}")

    def wait_ended(self, service: Service, seconds: float) -> None:
        """Wait until a service ends by itself. Raises DevstackError with its last log lines after `seconds`."""
        until = time.monotonic() + seconds
        while self.pid(service):
            if time.monotonic() > until:
                log = self.log(service)
                raise DevstackError(f"{service} still runs after {seconds:g} s; the end of {log}:\n{tail(log)}")
            time.sleep(0.05)

    def stop(self, service: Service, replica: int = 0) -> None:
        """Stop a service gracefully."""
        if process := _running(self.home, service, replica):
            process.end(grace=30)

    def kill(self, service: Service, replica: int = 0) -> None:
        """Kill a service with SIGKILL."""
        if process := _running(self.home, service, replica):
            process.kill()

    def pid(self, service: Service, replica: int = 0) -> int | None:
        """Return a service's process id; None if it does not run."""
        process = _running(self.home, service, replica)
        return process.pid if process else None

    def url(self, service: Service, replica: int = 0) -> str:
        """Return the URL of a service's HTTP server."""
        section = json.loads(self._config_of(service, replica).read_text())[_SECTIONS[service]]
        return f"http://{section['listen']}"

    def get(self, service: Service, path: str, replica: int = 0) -> httpx.Response:
        """Request a path of a service's HTTP server. Raises httpx.TransportError if it does not answer within 5 s."""
        return self._http.get(f"{self.url(service, replica)}{path}")

    def log(self, service: Service, replica: int = 0) -> Path:
        """Return a service's log file."""
        return self.home / f"{_label(service, replica)}.log"

    def _config_of(self, service: Service, replica: int) -> Path:
        """Return a replica's configuration file. For all but the first it is a copy with another `listen` address."""
        if replica == 0:
            return self.config
        copy = self.home / f"databus-{_label(service, replica)}.yaml"
        if not copy.exists():
            config = json.loads(self.config.read_text())
            config[_SECTIONS[service]]["listen"] = f"{HOST}:{free_ports(1)[0]}"
            copy.write_text(json.dumps(config, indent=2))
        return copy

    def _write_config(self, include: tuple[str, ...], overrides: Mapping[str, Mapping[str, Any]]) -> None:
        self.home.mkdir(parents=True, mode=0o700, exist_ok=True)
        secret = self.home / "password"
        secret.touch(mode=0o600)
        secret.write_text(self.source.password)
        listen = {section: {"listen": address} for section, address in self._addresses().items()}
        config: dict[str, Any] = {
            "name": self.name,
            "source": {
                "hosts": [f"{self.source.host}:{self.source.port}"],
                "user": self.source.user,
                "password_file": str(secret),
                "include": include,
            },
            "redis": {"url": self.redis.url},
            "kafka": {"bootstrap_servers": [self.kafka.url]},
            "reader": listen["reader"],
            "publisher": listen["publisher"],
            "dumps": listen["dumps"]
            | {"storage": f"file://{self.home}/dumps", "url": f"http://{listen['dumps']['listen']}"},
            "spark": listen["spark"] | {"lake": f"file://{self.lake}"},
        }
        for section, values in overrides.items():
            config[section] = {**config.get(section, {}), **values}
        self.config.write_text(json.dumps(config, indent=2))

    def _addresses(self) -> dict[str, str]:
        """Return each service's `listen` address: that of an earlier run, else a free one."""
        if self.config.exists():
            kept = json.loads(self.config.read_text())
            return {section: kept[section]["listen"] for section in _SECTIONS.values()}
        ports = free_ports(len(SERVICES))
        return {section: f"{HOST}:{port}" for section, port in zip(_SECTIONS.values(), ports, strict=True)}


def stop_services(home: Path) -> None:
    """Stop all services of a folder gracefully."""
    for service in reversed(SERVICES):
        for replica in replicas(home, service):
            if process := _running(home, service, replica):
                process.end(grace=30)


def replicas(home: Path, service: Service) -> range:
    """Return the numbers of a service's replicas that were started."""
    return range(len([*home.glob(f"{service}.json"), *home.glob(f"{service}-*.json")]))


def _running(home: Path, service: Service, replica: int) -> Process | None:
    process = Process.load(_pid_file(home, service, replica))
    return process if process and process.alive else None


def _pid_file(home: Path, service: Service, replica: int) -> Path:
    return home / f"{_label(service, replica)}.json"


def _label(service: Service, replica: int) -> str:
    return f"{service}-{replica}" if replica else service
