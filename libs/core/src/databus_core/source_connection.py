"""Sessions with the source database; errors of its client turned into ours."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace

from databus_binlog.errors import (
    AccessDenied,
    BinlogError,
    DuplicateServerId,
    Incident,
    MissingPrivilege,
    PositionPurged,
    PositionUnknown,
    ServerUnavailable,
    TlsFailed,
)
from databus_binlog.errors import Retryable as BinlogRetryable
from databus_binlog.session import Session, connect
from databus_core.cancellation import raise_if_cancelled
from databus_core.errors import START_OVER, FatalError, Refusal, SourceNotReady, SourceRefused, SourceUnavailable
from databus_core.settings import Source
from databus_core.wrong_server import wrong_server

_KIND = "MySQL or MariaDB"
#: error of the database's client → the settings to check
_SOURCE_SETTINGS: dict[type[BinlogError], str] = {
    AccessDenied: "source.user, source.password, source.tls",
    TlsFailed: "source.tls",
    DuplicateServerId: "reader.server_id",
}

#: error of a server that lacks the requested position, or does not send it to the account → why it is refused
_REFUSALS: dict[type[BinlogError], Refusal] = {
    PositionPurged: Refusal.PURGED,
    PositionUnknown: Refusal.OTHER_HISTORY,
    MissingPrivilege: Refusal.NOT_READY,
}


@asynccontextmanager
async def connect_source(
    source: Source, host: str | None = None, *, query_timeout: float = 60.0
) -> AsyncIterator[Session]:
    """Log in to a host of the database, by default its first. Queries must be answered within `query_timeout` seconds.

    Errors of the session leave the block as SourceUnavailable or a FatalError.
    """
    host = host or source.hosts[0]
    login = replace(source.login(host), query_timeout=query_timeout)
    async with AsyncExitStack() as stack:
        stack.enter_context(source_errors(host))
        try:
            session = await stack.enter_async_context(connect(login))
        except ServerUnavailable as error:
            # Do not ask a server that has answered: MySQL blocks a host that often connects and does not log in.
            if isinstance(error.__cause__, TimeoutError) and (
                other := await wrong_server(login.host, login.port, _KIND)
            ):
                raise SourceNotReady(f"database {host} is {other}, not {_KIND} (check source.hosts)") from error
            raise
        raise_if_cancelled()
        yield session


@contextmanager
def source_errors(host: str) -> Iterator[None]:
    """Turn errors of the database's client into ours."""
    try:
        yield
    except BinlogRetryable as error:
        raise SourceUnavailable(f"database {host}: {error}", host) from error
    except (AccessDenied, TlsFailed, DuplicateServerId) as error:
        settings = _SOURCE_SETTINGS[type(error)]
        raise SourceNotReady(f"database {host}: {error} (settings: {settings})") from error
    except tuple(_REFUSALS) as error:
        raise SourceRefused(_REFUSALS[type(error)], f"database {host}: {error}") from error
    except Incident as error:
        lost = FatalError(f"database {host}: {error}; {START_OVER}")
        lost.doubts_all = True
        raise lost from error
    except BinlogError as error:
        raise FatalError(f"database {host}: {error}") from error
