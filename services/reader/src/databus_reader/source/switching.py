"""The reader's side of `databus source switch`: it goes to the host it is asked to, if that has what is needed."""

import time

from redis.asyncio import Redis

from databus import switch
from databus.errors import DatabusError, GenerationLost
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus_reader.source.hosts import Hosts

log = get_logger(__name__)

_LOOK_SECONDS = 1.0


class Switching:
    """Looks for requests while the reader reads, and tells what became of them."""

    def __init__(self, redis: Redis, pipeline: str, hosts: Hosts) -> None:
        self._redis = redis
        self._pipeline = pipeline
        self._hosts = hosts
        self._request: switch.SwitchRequest | None = None
        self._looked = 0.0

    async def look(self) -> None:
        """Look once a second. Raises GenerationLost when there is another host to go to."""
        if time.monotonic() < self._looked + _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        request = await switch.pending(self._redis, self._pipeline)
        if request is None:
            return
        self._request = request
        if request.host == self._hosts.current:
            await self.arrived(request.host)
            return
        try:
            await self._hosts.reach(request.host)
        except DatabusError as error:
            self._hosts.unwanted = str(error)
            await self.arrived(self._hosts.current)
            return
        self._hosts.wanted = request.host
        raise GenerationLost(f"asked to go on at {request.host}")

    async def arrived(self, host: str) -> None:
        """Take note where the reader is, and answer a request."""
        await switch.store_host(self._redis, self._pipeline, host)
        if self._request is None:
            return
        request, self._request = self._request, None
        done = host == request.host
        text = f"the reader is at {host}" if done else f"the reader stays at {host}: {self._hosts.unwanted}"
        if done:
            log.info(LogEvent.SOURCE_SWITCHED, f"{text}, as requested")
        else:
            log.warning(LogEvent.SOURCE_NOT_SWITCHED, f"a switch to {request.host} was requested, but {text}")
        await switch.answer(self._redis, self._pipeline, request, switch.SwitchResult(done, text))


async def begin_switching(redis: Redis, pipeline: str, hosts: Hosts) -> Switching:
    """Begin at the host where the reader, or its predecessor, was last."""
    hosts.prefer(await switch.stored_host(redis, pipeline) or hosts.current)
    return Switching(redis, pipeline, hosts)
