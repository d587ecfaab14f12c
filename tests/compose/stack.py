"""The containers of compose.yaml as a project of their own, on free ports."""

import os
import subprocess
from pathlib import Path

from devstack.pipeline import Service
from devstack.ports import free_ports
from devstack.server import DevstackError, at

ROOT = Path(__file__).parents[2]
_PORTS = ("MARIADB", "MYSQL", "KAFKA", "READER", "PUBLISHER", "DUMP_API", "SPARK_SINK")
_PASSWORD = "it is $secret"


class ComposeStack:
    """A pipeline in containers."""

    name = "shop"

    def __init__(self, *profiles: str, hosts: str = "mariadb:3306") -> None:
        ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
        kind = hosts.partition(":")[0].upper()
        self._ports = ports
        self._profiles = [word for profile in profiles for word in ("--profile", profile)]
        self._environment = os.environ | {f"{name}_PORT": str(port) for name, port in ports.items()}
        self._environment |= {"DATABUS_PASSWORD": _PASSWORD, "DATABUS_HOSTS": hosts}
        self.kafka = at("kafka", "localhost", ports["KAFKA"])
        self.source = at("mysql" if kind == "MYSQL" else "mariadb", "127.0.0.1", ports[kind], "root", _PASSWORD)

    def compose(self, *words: str) -> None:
        """Run `docker compose`. Raises DevstackError with the end of its output if it fails."""
        command = ["docker", "compose", "--progress", "plain", "-p", "databus-test", *self._profiles, *words]
        done = subprocess.run(command, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DevstackError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")

    def copy_lake(self, folder: Path) -> Path:
        """Copy the lake to a folder, and return where it is."""
        self.compose("cp", "spark-sink:/var/lib/databus/lake", str(folder))
        return folder

    def url(self, service: Service) -> str:
        """Return the URL of a service's HTTP server."""
        return f"http://127.0.0.1:{self._ports[service.upper().replace('-', '_')]}"

    def wait(self, service: Service) -> None:
        """Wait until a service is ready."""
        self.compose("up", "--wait", service)


def why_not() -> str:
    """Return why the tests cannot run here; an empty text if they can."""
    try:
        subprocess.run(["docker", "compose", "version"], capture_output=True, check=True)
        subprocess.run(["docker", "info"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no Docker engine with Compose answers here"
    return ""
