"""A standby reaches what its work depends on, before it counts as ready. The election goes on meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeAlias

from databus_core.errors import DatabusError, RetryableError
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.runtime import Health

log = get_logger(__name__)

Reach: TypeAlias = Callable[[], Awaitable[object]]

#: seconds between two attempts
_PAUSE_SECONDS = 2.0
#: how long an attempt may take to end
_END_SECONDS = 0.5


class Reaching:
    """Calls `reach` until it returns once, unless the process has worked before.

    Its errors keep the standby from being ready, but end nothing: they may concern a host that it will not need.
    """

    def __init__(self, reach: Reach, health: Health) -> None:
        self._reach = reach
        self._health = health
        self._task: asyncio.Task[None] | None = None
        #: why it has not succeeded yet
        self.reason = "has not reached yet what it depends on"

    async def __aenter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Begin, unless it has begun, or is not needed."""
        if self._task is None and not self._health.has_reached:
            self._task = asyncio.create_task(self._until_reached())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the attempt, without a long wait: the lease may have been acquired, and has to be renewed.

        If a client that is connecting swallows the cancellation, the attempts end once the work has reached all.
        """
        if self._task:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_END_SECONDS)

    async def _until_reached(self) -> None:
        while not self._health.has_reached:
            try:
                await self._reach()
                self._health.has_reached = True
            except DatabusError as error:
                if isinstance(error, RetryableError):
                    self._health.outages.lost(error)
                elif str(error) != self.reason:
                    log.warning(LogEvent.STANDBY_NOT_READY, f"{error}; retrying", **error.fields)
                self.reason = str(error)
                await asyncio.sleep(_PAUSE_SECONDS)
