"""Prometheus, from the Debian packages of the machine's own release: it evaluates the alerts in tests."""

from pathlib import Path

import httpx

from devstack import cache, debs
from devstack.engine import Instance
from devstack.server import Kind, NotReadyError, Say, Server


class Prometheus:
    """Prometheus. A start needs the argument `--config.file`."""

    kind: Kind = "prometheus"
    user = ""
    ports = 1
    proxies = 0
    timeout = 60.0

    def install(self, say: Say) -> Path:
        """Unpack the server and `promtool`."""
        return cache.installed("prometheus", lambda folder: debs.unpack(self.kind, "prometheus", folder, say))

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Build the command line, without the configuration."""
        options = {"web.listen-address": f"127.0.0.1:{instance.ports[0]}", "storage.tsdb.path": instance.data}
        return [
            *debs.command(installation, "usr/bin/prometheus"),
            "--web.enable-lifecycle",
            *(f"--{name}={value}" for name, value in options.items()),
        ]

    async def ping(self, server: Server) -> None:
        """Ask whether it is ready."""
        try:
            async with httpx.AsyncClient(base_url=server.url, timeout=5) as client:
                (await client.get("/-/ready")).raise_for_status()
        except httpx.HTTPError as error:
            raise NotReadyError(str(error)) from error


def promtool(say: Say) -> list[str]:
    """Return the command line of `promtool`; arguments can be appended."""
    return debs.command(Prometheus().install(say), "usr/bin/promtool")
