"""The reader's side of `databus source switch`: move to the requested host, if it has what the progress needs."""

import time

from redis.asyncio import Redis

from databus_core import switch
from databus_core.errors import DatabusError, GenerationLost
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_reader.source.hosts import Hosts

log = get_logger(__name__)

_CHECK_SECONDS = 1.0


class Switching:
    """Checks for switch requests while the reader reads, and answers them."""

    def __init__(self, redis: Redis, pipeline: str, hosts: Hosts) -> None:
        self._redis = redis
        self._pipeline = pipeline
        self._hosts = hosts
        self._request: switch.SwitchRequest | None = None
        self._checked_at = 0.0

    async def check(self) -> None:
        """Check for a request, at most once a second. Raises GenerationLost to switch to another host."""
        if time.monotonic() < self._checked_at + _CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        request = await switch.pending(self._redis, self._pipeline)
        if request is None:
            return
        self._request = request
        if request.host == self._hosts.current:
            await self.report_host(request.host)
            return
        try:
            await self._hosts.probe(request.host)
        except DatabusError as error:
            self._hosts.failure = str(error)
            await self.report_host(self._hosts.current)
            return
        self._hosts.requested = request.host
        raise GenerationLost(f"a switch to {request.host} was requested")

    async def report_host(self, host: str) -> None:
        """Store the host that the reader reads now, and answer the open request."""
        await switch.store_host(self._redis, self._pipeline, host)
        if self._request is None:
            return
        request, self._request = self._request, None
        done = host == request.host
        text = f"the reader is at {host}" if done else f"the reader stays at {host}: {self._hosts.failure}"
        if done:
            log.info(LogEvent.SOURCE_SWITCHED, f"{text}, as requested")
        else:
            log.warning(LogEvent.SOURCE_NOT_SWITCHED, f"a switch to {request.host} was requested, but {text}")
        await switch.answer(self._redis, self._pipeline, request, switch.SwitchResult(done, text))


async def start_switching(redis: Redis, pipeline: str, hosts: Hosts) -> Switching:
    """Prefer the host that the pipeline's reader read most recently, and return this reader's `Switching`."""
    hosts.prefer(await switch.stored_host(redis, pipeline) or hosts.current)
    return Switching(redis, pipeline, hosts)
