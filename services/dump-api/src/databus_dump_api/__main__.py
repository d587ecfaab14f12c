"""The program `databus-dump-api`: an HTTP server and a worker that takes the requested dumps."""

import asyncio
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp

from databus import runtime
from databus.checks import run_all
from databus.redis_connection import connect_redis, redis_client
from databus.runtime import Health
from databus.settings import Settings
from databus_dump_api import app, snapshot
from databus_dump_api.dumps import DumpManager
from databus_dump_api.leases import Leases
from databus_dump_api.source import check_source, connect_pipeline_host
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
        """Connect to the dependencies, then take requested dumps forever."""
        await asyncio.to_thread(_store(settings).require_writable)
        async with connect_redis(settings.redis), connect_pipeline_host(settings.source, None):
            pass
        await snapshot.end_offsets(settings, set())
        health.up()
        async with self._leases:
            await self._dumps.work()


async def check(settings: Settings, _: Health) -> None:
    """Check the storage, Redis, Kafka, and the grants and captured tables of every host of the database."""
    hosts = (partial(check_source, settings, host) for host in settings.source.hosts)
    await run_all(
        lambda: asyncio.to_thread(_store(settings).require_writable),
        partial(_check_redis, settings),
        lambda: snapshot.end_offsets(settings, set()),
        *hosts,
    )


async def _check_redis(settings: Settings) -> None:
    async with connect_redis(settings.redis):
        pass


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
