"""The program `databus-dump-api`: an HTTP server and a worker that takes the requested dumps."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp

from databus_changes.host_checks import DUMP_CHECKS, host_results
from databus_core import runtime
from databus_core.checks import Check, require, results
from databus_core.kafka_checks import PROGRESS, kafka_results
from databus_core.kafka_progress import read_progress
from databus_core.metrics import DUMP_STORAGE_FREE
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.redis_checks import redis_results
from databus_core.redis_connection import connect_redis, redis_client
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_dump_api import app
from databus_dump_api.dumps import DumpManager
from databus_dump_api.leases import Leases
from databus_dump_api.store import DumpStore
from databus_messages.routing.rule_check import RULES

#: seconds between two checks of the dependencies
_CHECK_SECONDS = 10.0


class Service:
    """The HTTP application and the worker, which share the dumps."""

    _dumps: DumpManager
    _leases: Leases

    def app(self, settings: Settings, health: Health) -> ASGIApp:
        """Open the storage and build the HTTP application."""
        store = _store(settings)
        store.open()
        DUMP_STORAGE_FREE.set_function(store.free_bytes)
        self._leases = Leases(redis_client(settings.redis), settings.name, settings.dumps.lease_ttl)
        self._dumps = DumpManager(settings, store, self._leases)
        return app.build(self._dumps, health, settings)

    async def run(self, settings: Settings, health: Health) -> None:
        """Take requested dumps forever. Meanwhile readiness follows the dependencies that a request needs."""
        tasks = {
            asyncio.create_task(runtime.retrying(_watch, settings, health)),
            asyncio.create_task(self._dumps.work()),
        }
        async with self._leases:
            try:
                (ended, *_), _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                await ended
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)


async def _watch(settings: Settings, health: Health) -> None:
    while True:
        await _check_needs(settings)
        health.up()
        await asyncio.sleep(_CHECK_SECONDS)


async def check(settings: Settings, _: Health) -> None:
    """Check the storage, Redis, Kafka, and every host of the database."""
    found = await results("dump-api", nullcontext(settings), [Check("dumps.storage", _has_space)])
    found += await redis_results(settings)
    found += await kafka_results(settings, [PROGRESS])
    for host in settings.source.hosts:
        found += await host_results(settings, host, [*DUMP_CHECKS, RULES])
    require(found)


async def _has_space(settings: Settings) -> str:
    await asyncio.to_thread(_store(settings).require_space)
    return "has space"


async def _check_needs(settings: Settings) -> None:
    """Check what a request for a dump needs: space on the volume, Redis, Kafka and the host that the pipeline reads."""
    await asyncio.to_thread(_store(settings).require_space)
    async with connect_redis(settings.redis):
        pass
    async with connect_pipeline_host(settings.source, await read_progress(settings)):
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
