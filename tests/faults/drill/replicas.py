"""The replicas of a pipeline, kept running as the kubelet keeps containers running."""

import asyncio
import time
from dataclasses import dataclass
from typing import NamedTuple

import httpx

from common.waiting import eventually
from devstack.pipeline import Pipeline, Service

#: pauses before a container that has ended is started again, in seconds; the last one is repeated
_BACK_OFF = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
#: after so many seconds without an end the pauses begin anew
_STEADY_SECONDS = 600.0
_LOOK_SECONDS = 0.2


class Replica(NamedTuple):
    """One process of a service."""

    service: Service
    number: int

    def __str__(self) -> str:
        return f"{self.service}-{self.number}"


@dataclass
class _End:
    """How often a replica has ended within the last minutes, when it ended last, and when it is to be started."""

    often: int = 0
    at: float = 0.0
    due: float | None = None


class Replicas:
    """Starts replicas, and starts those again that end. The first restart is immediate, then the pauses grow."""

    def __init__(self, pipeline: Pipeline, replicas: tuple[Replica, ...]) -> None:
        self._pipeline = pipeline
        self.all = replicas
        self._wanted: set[Replica] = set()
        self._ends: dict[Replica, _End] = {}

    async def start(self, *services: Service) -> None:
        """Start all replicas of services, without waiting for them."""
        for replica in self.of(*services):
            self._pipeline.spawn(replica.service, replica=replica.number)
            self._ends.pop(replica, None)
            self._wanted.add(replica)

    async def replace(self, *services: Service) -> None:
        """Start those that do not run at once, as `kubectl delete pod` does."""
        for replica in self.of(*services):
            if self._pipeline.pid(*replica) is None:
                self._pipeline.spawn(replica.service, replica=replica.number)
            self._ends.pop(replica, None)

    async def ready(self) -> None:
        """Wait until all replicas are ready."""
        for replica in self.all:
            await asyncio.to_thread(self._pipeline.wait, *replica)

    async def stop(self, *services: Service) -> None:
        """Stop all replicas of services, as `kubectl scale --replicas=0` does."""
        for replica in self.of(*services):
            self._wanted.discard(replica)
        for replica in self.of(*services):
            await asyncio.to_thread(self._pipeline.stop, *replica)

    async def kill(self, replica: Replica) -> None:
        """Kill a replica with SIGKILL; it is started again."""
        await asyncio.to_thread(self._pipeline.kill, *replica)

    async def discard(self) -> None:
        """Kill all, and start none again."""
        self._wanted.clear()
        for replica in self.all:
            await self.kill(replica)

    async def run(self) -> None:
        """Start replicas again that have ended, until cancelled."""
        while True:
            for replica in sorted(self._wanted):
                if self._pipeline.pid(*replica) is None:
                    self._restart(replica)
            await asyncio.sleep(_LOOK_SECONDS)

    def _restart(self, replica: Replica) -> None:
        now, end = time.monotonic(), self._ends.setdefault(replica, _End())
        if end.due is None:
            often = 0 if now - end.at > _STEADY_SECONDS else end.often
            end.often, end.at, end.due = often + 1, now, now + _BACK_OFF[min(often, len(_BACK_OFF) - 1)]
        if end.due <= now:
            self._pipeline.spawn(replica.service, replica=replica.number)
            end.due = None

    async def readiness(self) -> dict[Replica, tuple[int, str]]:
        """Return the status and the text of each one's `/readyz`; 0 if it does not answer."""
        answers = await asyncio.gather(*(asyncio.to_thread(self._readiness, replica) for replica in self.all))
        return dict(zip(self.all, answers, strict=True))

    def _readiness(self, replica: Replica) -> tuple[int, str]:
        try:
            answer = self._pipeline.get(replica.service, "/readyz", replica.number)
        except httpx.TransportError:
            return 0, "no answer"
        return answer.status_code, " ".join(answer.text.split())

    async def active(self, service: Service) -> Replica:
        """Return the active replica of a service, when there is one that works."""

        async def working() -> list[Replica]:
            found = await self.readiness()
            return [each for each in self.of(service) if found[each][0] and found[each][1].startswith("ok")]

        [active] = await eventually(working, pause=0.5)
        return active

    def of(self, *services: Service) -> list[Replica]:
        """Return the replicas of services."""
        return [each for each in self.all if each.service in services]
