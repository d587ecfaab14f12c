"""Redis, from the Debian packages of the machine's own release."""

from pathlib import Path

from redis.asyncio import Redis as Client
from redis.exceptions import RedisError

from devstack import cache, debs
from devstack.engine import Instance
from devstack.server import Kind, NotReadyError, Say, Server


class Redis:
    """Redis with persistence, so that its data survives a kill."""

    kind: Kind = "redis"
    user = ""
    ports = 1
    proxies = 0
    timeout = 30.0

    def install(self, say: Say) -> Path:
        """Unpack the server."""
        return cache.installed("redis", lambda folder: debs.unpack(self.kind, "redis-server", folder, say))

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Build the command line; there is no configuration file."""
        options = {
            "bind": "127.0.0.1",
            "port": instance.ports[0],
            "dir": instance.data,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        return [*debs.command(installation, "usr/bin/redis-server"), *arguments]

    async def ping(self, server: Server) -> None:
        """Send PING, which Redis refuses while it loads its data."""
        try:
            async with Client.from_url(server.url) as client:
                await client.ping()
        except (OSError, RedisError) as error:
            raise NotReadyError(str(error)) from error
