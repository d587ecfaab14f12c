"""Connect to the host of the database that the pipeline reads, if the progress names it.

A snapshot contains everything that is in its server's binlog, and Kafka was filled from that binlog. Another host may
lag behind. Its dump would lack changes that Kafka already has, and consumers, which read only later ones, would not
get them at all. And a table, or a column of it, may not exist there yet.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from databus_binlog.session import Session
from databus_core.errors import SourceNotReady, SourceUnavailable
from databus_core.progress import Progress
from databus_core.settings import Source
from databus_core.source_connection import connect_source


@asynccontextmanager
async def connect_pipeline_host(source: Source, progress: Progress | None) -> AsyncIterator[tuple[str, Session]]:
    """Log in to the server that the progress names, or to the first host that answers if the progress names none.

    Yields the host and the session. Errors of the session leave the block as in `connect_source`. Raises
    SourceUnavailable also while the reader is failing over to another host, and SourceNotReady if no host can be
    used.
    """
    async with AsyncExitStack() as connections:
        yield await _find_host(source, progress.server if progress else "", connections)


async def _find_host(source: Source, server: str, connections: AsyncExitStack) -> tuple[str, Session]:
    failures: list[SourceUnavailable | SourceNotReady] = []
    for host in source.hosts:
        try:
            async with AsyncExitStack() as attempt:
                session = await attempt.enter_async_context(connect_source(source, host))
                if server in ("", session.server.identity):
                    connections.push_async_exit(attempt.pop_all())
                    return host, session
                text = f"database {host}: it is not the server that the pipeline reads ({server})"
                failures.append(SourceUnavailable(text, host))
        except (SourceUnavailable, SourceNotReady) as error:
            failures.append(error)
    final = all(isinstance(error, SourceNotReady) for error in failures)
    raise (SourceNotReady if final else SourceUnavailable)("; ".join(map(str, failures)))
