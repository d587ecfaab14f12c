"""The hosts of the source: which one is read, and when another one is.

They are taken in turn, beginning with the one the reader is at. One that cannot be reached is skipped; one that can has
to have what the progress needs. A host that is behind may catch up, and one that is away may come back: for these the
reader waits a minute before it gives up, unless there is nobody to wait for.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from databus import metrics
from databus.errors import (
    DatabusError,
    FatalError,
    InvalidSettings,
    Refusal,
    SourceNotReady,
    SourceRefused,
    SourceUnavailable,
)
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.progress import Progress
from databus.runtime import Health
from databus.settings import Settings
from databus.source_connection import connect_source
from databus_binlog import Position
from databus_binlog.session import Session
from databus_reader.source.engine import require_readable
from databus_reader.source.start import resolve
from databus_reader.source.verify import verify

log = get_logger(__name__)

_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
#: what a host that the reader was asked to go to may take to catch up
_CATCH_UP_SECONDS = 10.0
_CATCH_UP_PAUSE = 0.2
#: a host that is lost sooner is no reason to hurry to another one
_BRIEF_SECONDS = 5.0
#: that can be asked for
_LARGEST_OFFSET = 2**32 - 1


@dataclass(frozen=True)
class Place:
    """A session at a verified host, and the position to go on from there."""

    host: str
    session: Session
    position: Position
    #: positions from here on tell all GTIDs executed before
    gtids: bool
    #: its log has all of the GTID set before the place, and nothing else
    in_order: bool

    @property
    def beginning(self) -> Position:
        """What to ask the host for: by file where that is the same.

        Asked by GTIDs it may skip the rest of a file, and with it what has no GTID, an incident for example.
        """
        by_file = self.in_order and self.position.offset <= _LARGEST_OFFSET
        return Position("", self.position.file, self.position.offset) if by_file else self.position


@dataclass
class Hosts:
    """The turn, its first host being the one the reader is at."""

    settings: Settings
    patience: float = _PATIENCE_SECONDS
    #: the one that the reader was asked to go to, until it has tried
    wanted: str | None = None
    #: why it did not go there
    unwanted: str = ""
    #: what the servers themselves refused after they had been verified, and at which position
    _refused: dict[str, tuple[Position | None, SourceRefused]] = field(default_factory=dict)
    _since: float | None = None

    def __post_init__(self) -> None:
        self._turn = list(self.settings.source.hosts)

    @property
    def current(self) -> str:
        """The host that the reader is at, or tries first."""
        return self._turn[0]

    def prefer(self, host: str) -> None:
        """Begin with a host, if it is one of them."""
        if host in self._turn:
            self._turn.remove(host)
            self._turn.insert(0, host)

    @asynccontextmanager
    async def connect(self, progress: Progress, health: Health) -> AsyncIterator[Place]:
        """Log in to the first host that has what the progress needs.

        Raises SourceUnavailable when none can be reached, else a FatalError with the reason of each.
        """
        self._since = None
        async with AsyncExitStack() as held:
            place = await self._asked_for(progress, held) or await self._first(progress, held, health)
            self._since = asyncio.get_running_loop().time()
            self.prefer(place.host)
            for host in self._turn:
                metrics.SOURCE_HOST.labels(host).set(host == place.host)
            yield place

    async def reach(self, host: str) -> None:
        """Look whether a host is one of ours, can be reached and is set up. Raises DatabusError."""
        if host not in self._turn:
            raise InvalidSettings(f"{host} is none of source.hosts ({', '.join(self.settings.source.hosts)})")
        async with connect_source(self.settings.source, host) as session:
            await require_readable(session, self.settings, host)

    async def _asked_for(self, progress: Progress, held: AsyncExitStack) -> Place | None:
        """Try the host that the reader was asked to go to; one that is behind is given a moment to catch up."""
        host, self.wanted = self.wanted, None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CATCH_UP_SECONDS
        while host:
            try:
                return await self.enter(host, progress, held)
            except (SourceUnavailable, FatalError) as error:
                if not _may_pass(error) or loop.time() > deadline:
                    self.unwanted = str(error)
                    return None
            await asyncio.sleep(_CATCH_UP_PAUSE)
        return None

    async def _first(self, progress: Progress, held: AsyncExitStack, health: Health) -> Place:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience
        refusals: set[str] = set()
        while True:
            failures: list[DatabusError] = []
            for host in self._turn:
                try:
                    return await self.enter(host, progress, held)
                except SourceUnavailable as error:
                    failures.append(error)
                    health.outages.lost(error)
                except FatalError as error:
                    failures.append(error)
                    if str(error) not in refusals:
                        refusals.add(str(error))
                        log.warning(LogEvent.HOST_REFUSED, str(error), host=host)
            if not any(isinstance(error, FatalError) for error in failures):
                raise failures[0] if len(failures) == 1 else SourceUnavailable("; ".join(map(str, failures)))
            if not any(map(_may_pass, failures)) or loop.time() > deadline:
                raise failures[0] if len(failures) == 1 else SourceNotReady("\n".join(map(str, failures)))
            health.down("no host can be read yet: " + "; ".join(map(str, failures)))
            health.beat()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def enter(self, host: str, progress: Progress, held: AsyncExitStack) -> Place:
        """Log in to one host for as long as `held`. Raises SourceUnavailable, or a FatalError that says why not."""
        settings = self.settings
        login = settings.source.login(host)
        try:
            async with AsyncExitStack() as attempt:
                session = await attempt.enter_async_context(connect_source(settings.source, host))
                refused_at, refusal = self._refused.get(host, (None, None))
                if refusal and refused_at == progress.position:
                    raise refusal
                await require_readable(session, settings, host)
                if progress.position is None:
                    progress = await resolve(settings, host, session)
                try:
                    verified = await verify(session, login, progress, server_id=settings.server_id)
                except SourceRefused as error:
                    raise SourceRefused(error.reason, f"database {host}: {error.reason}: {error}") from error
                held.push_async_exit(attempt.pop_all())
                return Place(host, session, *verified)
        except FatalError as error:
            reason = error.reason if isinstance(error, SourceRefused) else Refusal.NOT_READY
            metrics.SOURCE_REFUSALS.labels(host, reason).inc()
            raise

    async def leave(self, progress: Progress, error: SourceUnavailable | SourceRefused) -> None:
        """Try the other hosts first, at once unless this one was lost as soon as it was reached.

        Raises the error where none was reached, or there is no other.
        """
        host, *others = self._turn
        if self._since is None or not others:
            raise error
        if isinstance(error, SourceRefused):
            self._refused[host] = progress.position, error
        self._turn = [*others, host]
        if asyncio.get_running_loop().time() < self._since + _BRIEF_SECONDS:
            await asyncio.sleep(_PAUSE_SECONDS)


def _may_pass(error: DatabusError) -> bool:
    """Whether a host may be of use later, though nobody does anything about it."""
    return isinstance(error, SourceUnavailable) or (isinstance(error, SourceRefused) and error.reason is Refusal.BEHIND)
