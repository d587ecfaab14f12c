"""The program `databus-dump-api`: an HTTP server and a worker that takes the requested dumps."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from redis.asyncio import Redis
from starlette.types import ASGIApp

from databus_changes.host_checks import DUMP_CHECKS, host_results
from databus_core import runtime
from databus_core.checks import Check, require, results
from databus_core.kafka_checks import PROGRESS, kafka_results
from databus_core.kafka_progress import read_progress
from databus_core.metrics import dumps as metrics
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.redis_checks import redis_results
from databus_core.redis_connection import connect_redis, redis_client
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_dump_api import app, inventory
from databus_dump_api.access import require_protection
from databus_dump_api.dumps import DumpManager
from databus_dump_api.folder_store import FolderStore
from databus_dump_api.idempotency import IdempotentRequests
from databus_dump_api.leases import Leases
from databus_dump_api.owners import Owners
from databus_dump_api.passed import record_passed
from databus_dump_api.retention import delete_expired
from databus_dump_api.schedules import Scheduler
from databus_dump_api.store import DumpStore
from databus_dump_api.worker import Worker
from databus_messages.routing.rule_check import RULES

#: seconds between two checks of the dependencies
_CHECK_SECONDS = 10.0


class Service:
    """The HTTP application, and the work in the background, which share the dumps."""

    _redis: Redis
    _dumps: DumpManager
    _leases: Leases
    _store: DumpStore
    _worker: Worker
    _scheduler: Scheduler

    def app(self, settings: Settings, health: Health) -> ASGIApp:
        """Open the storage and build the HTTP application."""
        self._store = store = _store(settings)
        store.open()
        metrics.STORAGE_FREE_BYTES.set_function(lambda: _free_bytes(store))
        self._redis = redis_client(settings.redis)
        owners = Owners(self._redis, settings.name)
        self._worker = Worker(settings, store, owners)
        self._leases = Leases(self._redis, settings.name, settings.dumps.lease_ttl)
        metrics.SCHEDULES.set(len(settings.dumps.schedules))
        self._dumps = DumpManager(settings, store, self._leases, owners, self._worker.wake)
        self._scheduler = Scheduler(settings, self._dumps, owners)
        return app.build(self._dumps, IdempotentRequests(self._redis, settings.name), health, settings)

    async def run(self, settings: Settings, health: Health) -> None:
        """Take, schedule and delete dumps forever. Readiness follows the dependencies that a request needs."""
        works = (
            lambda: _watch(settings, health),
            self._worker.take_dumps,
            self._worker.end_orphans,
            lambda: record_passed(settings, self._store),
            self._scheduler.run,
            lambda: delete_expired(self._dumps, settings.dumps),
            lambda: inventory.show(self._dumps, self._leases),
        )
        tasks = {asyncio.create_task(runtime.retrying(_ignoring(work), settings, health)) for work in works}
        async with self._redis:
            try:
                (ended, *_), _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                await ended
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)


def _ignoring(work: Callable[[], Coroutine[Any, Any, None]]) -> runtime.Work:
    """Give work that knows the settings the parameters that `retrying` passes."""
    return lambda _settings, _health: work()


async def _watch(settings: Settings, health: Health) -> None:
    while True:
        await _check_needs(settings)
        health.up()
        await asyncio.sleep(_CHECK_SECONDS)


async def check(settings: Settings, _: Health) -> None:
    """Check the login, the storage, Redis, Kafka, and every host of the database."""
    found = await results("dump-api", nullcontext(settings), [Check("dumps.listen", _is_protected)])
    found += await results("dump-api", nullcontext(settings), [Check("dumps.storage", _has_space)])
    found += await redis_results(settings)
    found += await kafka_results(settings, [PROGRESS])
    for host in settings.source.hosts:
        found += await host_results(settings, host, [*DUMP_CHECKS, RULES])
    require(found)


async def _is_protected(settings: Settings) -> str:
    require_protection(settings.dumps)
    return "is protected"


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


def _free_bytes(store: DumpStore) -> float:
    """Return the free bytes for the metric: an error here would take all metrics away."""
    try:
        return store.free_bytes()
    except OSError:  # readiness shows it
        return math.nan


def _store(settings: Settings) -> DumpStore:
    url = settings.dumps.storage
    if url.startswith("s3:"):
        # Only a store in S3 needs the library.
        from databus_dump_api.bucket_store import BucketStore  # noqa: PLC0415

        return BucketStore(url)
    return FolderStore(Path(unquote(urlsplit(url).path)))


def main() -> None:
    """Run the service."""
    service = Service()
    runtime.main(
        "dump-api", listen=lambda settings: settings.dumps.listen, run=service.run, check=check, app=service.app
    )


if __name__ == "__main__":
    main()
