"""Pauses between attempts to reach a service, and the lines about them in the log."""

import asyncio

from databus_core.errors import RetryableError
from databus_core.outages import Outages

#: pauses in seconds: each is twice as long as the one before, up to the last
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 30.0


class Retries:
    """The attempts of one thing that is tried for ever."""

    def __init__(self) -> None:
        self._outages = Outages()
        self._pause = _FIRST_PAUSE

    async def wait(self, error: RetryableError) -> None:
        """Pause before the next attempt."""
        self._outages.lost(error)
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, _LAST_PAUSE)

    def succeeded(self) -> None:
        """Note that it works again."""
        self._outages.back()
        self._pause = _FIRST_PAUSE
