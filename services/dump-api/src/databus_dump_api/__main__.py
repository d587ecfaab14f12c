"""The program `databus-dump-api`: an HTTP server and a worker that takes the requested dumps."""

import asyncio
from pathlib import Path
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp

from databus import runtime
from databus.redis_connection import connect_redis, redis_client
from databus.runtime import Health
from databus.settings import Settings
from databus_dump_api import app, snapshot
from databus_dump_api.dumps import DumpManager
from databus_dump_api.leases import Leases
from databus_dump_api.source import connect_pipeline_host
from databus_dump_api.store import DumpStore


class Service:
    """The HTTP application and the worker, which share the dumps."""

    _dumps: DumpManager
    _leases: Leases

    def app(self, settings: Settings, health: Health) -> ASGIApp:
        """Open the storage and build the HTTP application."""
        store = _store(settings)
        store.open()
        self._leases = Leases(redis_client(settings.redis), settings.name, settings.dumps.lease_ttl)
        self._dumps = DumpManager(settings, store, self._leases)
        return app.build(self._dumps, health, settings.dumps.lease_ttl)

    async def run(self, settings: Settings, health: Health) -> None:
        """Check the dependencies, then take requested dumps forever."""
        await check(settings, health)
        health.up()
        async with self._leases:
            await self._dumps.work()


async def check(settings: Settings, _: Health) -> None:
    """Check that the storage is writable and that Redis, the database and Kafka can be reached."""
    await asyncio.to_thread(_store(settings).require_writable)
    async with connect_redis(settings.redis), connect_pipeline_host(settings.source, None):
        pass
    await snapshot.end_offsets(settings, set())


def _store(settings: Settings) -> DumpStore:
    return DumpStore(Path(unquote(urlsplit(settings.dumps.storage).path)))


def main() -> None:
    """Run the service."""
    service = Service()
    runtime.main(
        "dump-api", listen=lambda settings: settings.dumps.listen, run=service.run, check=check, app=service.app
    )


if __name__ == "__main__":
    main()
