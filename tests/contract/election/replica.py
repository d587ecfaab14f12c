"""A replica that competes for a lease, and works while it holds it."""

import asyncio
from time import monotonic
from typing import Protocol

from databus_core.election import holding
from databus_core.errors import KafkaUnavailable
from databus_core.leases import LeaderLease
from databus_core.runtime import Health

#: seconds between renewals
RENEW = 0.8
#: seconds after which a replica that has not got into the state that a test waits for never will
NEVER = 30.0


class Replica(Health):
    """A replica of a service: once it is active, it works until `leave` is set. It records when it began and ended."""

    def __init__(self, lease: LeaderLease, renew: float) -> None:
        super().__init__()
        self.lease = lease
        self._renew = renew
        self._stands_by, self.works, self.leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
        #: set while the replica can reach what it depends on
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.began = self.ended = 0.0
        self.task = asyncio.create_task(self._run())

    def stand_by(self, reason: str) -> None:
        super().stand_by(reason)
        self._stands_by.set()

    async def standing_by(self) -> None:
        """Wait until the replica has stood by. Raises TimeoutError."""
        async with asyncio.timeout(NEVER):
            await self._stands_by.wait()

    async def working(self) -> None:
        """Wait until the replica has become active. Raises TimeoutError."""
        async with asyncio.timeout(NEVER):
            await self.works.wait()

    async def reach(self) -> None:
        if not self.reachable.is_set():
            raise KafkaUnavailable("no broker answers")

    async def _run(self) -> None:
        async with holding(self.lease, "reader", self._renew, self, self.reach):
            self.began = monotonic()
            self.works.set()
            try:
                await self.leave.wait()
            finally:
                self.ended = monotonic()


class Start(Protocol):
    """Starts a replica with a lease, or with a name under which it competes for one."""

    def __call__(self, lease: str | LeaderLease, renew: float = RENEW) -> Replica: ...
