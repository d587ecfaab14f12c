"""Sessions with the source database; errors of its client turned into ours."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from databus.errors import FatalError, Refusal, SourceNotReady, SourceRefused, SourceUnavailable
from databus.settings import Source
from databus_binlog.errors import (
    AccessDenied,
    BinlogError,
    DuplicateServerId,
    MissingPrivilege,
    PositionPurged,
    PositionUnknown,
    TlsFailed,
)
from databus_binlog.errors import Retryable as BinlogRetryable
from databus_binlog.session import Session, connect

#: error of the database's client → the settings to check
_SOURCE_SETTINGS: dict[type[BinlogError], str] = {
    AccessDenied: "source.user, source.password, source.tls",
    TlsFailed: "source.tls",
    DuplicateServerId: "reader.server_id",
}

#: error of a server that lacks the requested position → why the reader refuses the host
_REFUSALS: dict[type[BinlogError], Refusal] = {
    PositionPurged: Refusal.PURGED,
    PositionUnknown: Refusal.OTHER_HISTORY,
}


@asynccontextmanager
async def connect_source(source: Source, host: str | None = None) -> AsyncIterator[Session]:
    """Log in to a host of the database, by default its first.

    Errors of the session leave the block as SourceUnavailable or a FatalError.
    """
    host = host or source.hosts[0]
    with source_errors(host):
        async with connect(source.login(host)) as session:
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
    except MissingPrivilege as error:
        raise SourceNotReady(f"database {host}: {error}") from error
    except tuple(_REFUSALS) as error:
        raise SourceRefused(_REFUSALS[type(error)], f"database {host}: {error}") from error
    except BinlogError as error:
        raise FatalError(f"database {host}: {error}") from error
