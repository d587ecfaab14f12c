"""Dumps at certain times.

Nothing is stored about a schedule but its dumps: the manifest of each names it. The next one is due some time after the
newest was requested. So of several missed times only one is made up for, also after all replicas were down, and after
Redis lost its data. The replica that finds a schedule due becomes its owner for a moment, and looks again.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from cronsim import CronSim

from databus_core.errors import DatabusError
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import Manifest
from databus_core.settings import Settings
from databus_core.settings.dumps import Schedule
from databus_dump_api.dumps import DumpManager
from databus_dump_api.owners import Owners

log = get_logger(__name__)

#: seconds between two looks
_PAUSE_SECONDS = 1.0
#: seconds until a request that failed is made again
_RETRY_SECONDS = 30.0


def due(schedule: Schedule, newest_first: Sequence[Manifest], started: datetime) -> datetime | None:
    """Return when the next dump of a schedule is due; None while its last one has not ended.

    The first dump is due at `started`, or for a `cron` at its first time after that.
    """
    last = next((manifest for manifest in newest_first if manifest.schedule == schedule.name), None)
    if last and not last.state.ended:
        return None
    if schedule.every is not None:
        return last.created + timedelta(seconds=schedule.every) if last else started
    return next(CronSim(schedule.cron or "", last.created if last else started))


class Scheduler:
    """Requests the dumps of the schedules."""

    def __init__(self, settings: Settings, dumps: DumpManager, owners: Owners) -> None:
        self._settings = settings
        self._dumps = dumps
        self._owners = owners
        self._started = datetime.now(UTC)
        #: when a schedule whose request failed is looked at again
        self._retry: dict[str, datetime] = {}

    async def run(self) -> None:
        """Request dumps when they are due, forever. Raises the errors of the storage and of `redis_errors`."""
        while self._settings.dumps.schedules:
            for schedule in self._settings.dumps.schedules:
                if self._retry.get(schedule.name, self._started) <= datetime.now(UTC) and await self._is_due(schedule):
                    await self._request(schedule)
            await asyncio.sleep(_PAUSE_SECONDS)
        await asyncio.Event().wait()

    async def _is_due(self, schedule: Schedule) -> bool:
        time = due(schedule, await self._dumps.newest_first(), self._started)
        return time is not None and time <= datetime.now(UTC)

    async def _request(self, schedule: Schedule) -> None:
        """Request a dump, unless another replica has done it or does it now."""
        lease = self._owners.schedule(schedule.name)
        if await lease.take() != lease.me:
            return
        try:
            if await self._is_due(schedule):
                manifest = await self._dumps.request(schedule.tables, schedule.mode, schedule.name)
                log.info(LogEvent.DUMP_SCHEDULED, f"schedule {schedule.name} is due", dump=manifest.id)
        except DatabusError as error:
            self._retry[schedule.name] = datetime.now(UTC) + timedelta(seconds=_RETRY_SECONDS)
            text = f"schedule {schedule.name}: the dump cannot be requested now: {error}"
            log.warning(LogEvent.SCHEDULE_FAILED, " ".join(text.split()))
        finally:
            with suppress(DatabusError):  # it expires
                await lease.release()
