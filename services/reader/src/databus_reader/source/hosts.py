"""The hosts of the source: which one the reader reads, and when it moves to another.

The reader tries the hosts in order, starting with its current one. It skips a host that it cannot reach, and refuses a
host that is not set up for it or lacks something the progress needs. If no host can be reached, the reader reports that
at once. If any host is refused, the reader waits up to a minute for hosts that may recover: those that are behind or
unreachable.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import product

from databus_binlog import Position
from databus_binlog.session import Session
from databus_core.errors import (
    DatabusError,
    FatalError,
    InvalidSettings,
    Refusal,
    SourceNotReady,
    SourceRefused,
    SourceUnavailable,
)
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics
from databus_core.progress import Progress
from databus_core.readiness import require_readable
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_core.source_start import first_progress
from databus_core.source_verify import verify

log = get_logger(__name__)

_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
#: how long a requested host may take to catch up or to become reachable
_CATCH_UP_SECONDS = 10.0
_CATCH_UP_PAUSE = 0.2
#: if a connection is lost sooner than this, the reader pauses before it tries another host
_BRIEF_SECONDS = 5.0
#: the largest offset from which a binlog dump can be requested
_LARGEST_OFFSET = 2**32 - 1


@dataclass(frozen=True)
class SourceConnection:
    """A session with a verified host, and the position to resume from."""

    host: str
    session: Session
    position: Position
    #: whether this position and later ones carry the set of all GTIDs executed before them
    gtids: bool
    #: whether the host's log has exactly the position's GTID set before the position's file and offset
    in_order: bool

    @property
    def binlog_start(self) -> Position:
        """The position to request the binlog from: only file and offset, if they mean the same as the GTID set.

        If the binlog is requested by GTID, the host may skip the rest of a file, and with it events without a GTID, for
        instance an incident.
        """
        by_file = self.in_order and self.position.offset <= _LARGEST_OFFSET
        return Position("", self.position.file, self.position.offset) if by_file else self.position


@dataclass
class Hosts:
    """The hosts in the order in which the reader tries them; the first is its current one."""

    settings: Settings
    patience: float = _PATIENCE_SECONDS
    #: the host that a switch request names, until the reader tries it
    requested: str | None = None
    #: why the reader did not switch to the last requested host
    failure: str = ""
    #: host that was verified but then refused to send the binlog → the position of the progress then, and the error
    _refused: dict[str, tuple[Position | None, SourceRefused]] = field(default_factory=dict)
    #: when the last call of `connect` made its connection, on the loop's clock; None if it made none
    _connected_at: float | None = None

    def __post_init__(self) -> None:
        self._order = list(self.settings.source.hosts)
        for host, reason in product(self._order, Refusal):
            metrics.SOURCE_REFUSALS.labels(host, reason)

    @property
    def current(self) -> str:
        """The host that the reader reads, or tries first."""
        return self._order[0]

    def prefer(self, host: str) -> None:
        """Try a host first, if it is one of the source's hosts."""
        if host in self._order:
            self._order.remove(host)
            self._order.insert(0, host)

    @asynccontextmanager
    async def connect(self, progress: Progress, health: Health) -> AsyncIterator[SourceConnection]:
        """Log in to a host that has everything the progress needs: the requested one or, failing that, the first.

        If there is no such host, raises SourceUnavailable when none can be reached, otherwise a FatalError with the
        reason of each host. Also raises DumpApiUnavailable, if `reader.start` names a dump and dump-api cannot be
        reached.
        """
        self._connected_at = None
        async with AsyncExitStack() as sessions:
            connection = await self._try_requested(progress, sessions)
            if connection is None:
                connection = await self._log_in_first(progress, sessions, health)
            self._connected_at = asyncio.get_running_loop().time()
            self.prefer(connection.host)
            for host in self._order:
                metrics.SOURCE_HOST.labels(host).set(host == connection.host)
            yield connection

    async def probe(self, host: str) -> None:
        """Check that a host is one of the source's, can be reached and is set up. Raises DatabusError."""
        if host not in self._order:
            raise InvalidSettings(f"{host} is not one of source.hosts ({', '.join(self.settings.source.hosts)})")
        async with connect_source(self.settings.source, host) as session:
            await require_readable(session, self.settings, host)

    async def _try_requested(self, progress: Progress, sessions: AsyncExitStack) -> SourceConnection | None:
        """Log in to the requested host, if any; retry for 10 s if it is behind or unreachable. None if this fails."""
        host, self.requested = self.requested, None
        self._refused.pop(host or "", None)  # an operator may have mended the host
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CATCH_UP_SECONDS
        while host:
            try:
                return await self.log_in(host, progress, sessions)
            except (SourceUnavailable, FatalError) as error:
                if not _may_recover(error) or loop.time() > deadline:
                    self.failure = str(error)
                    return None
            await asyncio.sleep(_CATCH_UP_PAUSE)
        return None

    async def _log_in_first(self, progress: Progress, sessions: AsyncExitStack, health: Health) -> SourceConnection:
        """Log in to the first host that can be read. If one is refused, retry for `patience` while any may recover."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience
        refusals: set[str] = set()
        while True:
            failures: list[DatabusError] = []
            for host in self._order:
                try:
                    return await self.log_in(host, progress, sessions)
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
            if not any(map(_may_recover, failures)) or loop.time() > deadline:
                final = [_with_advice(error) for error in failures]
                raise final[0] if len(final) == 1 else _joined(final)
            health.down("no host can be read yet: " + "; ".join(map(str, failures)))
            health.beat()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def log_in(self, host: str, progress: Progress, sessions: AsyncExitStack) -> SourceConnection:
        """Log in to a host; closing `sessions` logs out.

        Raises SourceUnavailable, DumpApiUnavailable, or a FatalError with the reason.
        """
        settings = self.settings
        try:
            async with AsyncExitStack() as attempt:
                session = await attempt.enter_async_context(connect_source(settings.source, host))
                refused_at, refusal = self._refused.get(host, (None, None))
                if refusal and refused_at == progress.position:
                    raise refusal
                await require_readable(session, settings, host)
                if progress.position is None:
                    progress = await first_progress(settings, progress, host, session)
                verified = await verify(settings, host, session, progress)
                sessions.push_async_exit(attempt.pop_all())
                return SourceConnection(host, session, *verified)
        except FatalError as error:
            reason = error.reason if isinstance(error, SourceRefused) else Refusal.NOT_READY
            metrics.SOURCE_REFUSALS.labels(host, reason).inc()
            raise

    async def leave(self, progress: Progress, error: SourceUnavailable | SourceRefused) -> None:
        """Move the current host to the end of the order. Pause if its connection was lost within seconds.

        Raises `error` if no connection was made, or if there is no other host.
        """
        host, *others = self._order
        if self._connected_at is None or not others:
            raise error if self._connected_at is None else _with_advice(error)
        if isinstance(error, SourceRefused):
            self._refused[host] = progress.position, error
            metrics.SOURCE_REFUSALS.labels(host, error.reason).inc()
        self._order = [*others, host]
        if asyncio.get_running_loop().time() < self._connected_at + _BRIEF_SECONDS:
            await asyncio.sleep(_PAUSE_SECONDS)


def _with_advice(error: DatabusError) -> DatabusError:
    """Return the error with which the reader stops: it names the command that makes the pipeline continue."""
    return error.with_advice() if isinstance(error, SourceRefused) else error


def _joined(errors: list[DatabusError]) -> SourceNotReady:
    joined = SourceNotReady("\n".join(map(str, errors)))
    joined.doubts_all = all(isinstance(error, FatalError) and error.doubts_all for error in errors)
    return joined


def _may_recover(error: DatabusError) -> bool:
    """Return whether the host may become readable without an operator: it is unreachable or behind."""
    return isinstance(error, SourceUnavailable) or (isinstance(error, SourceRefused) and error.reason is Refusal.BEHIND)
