"""The host that a dump is taken from: the one that the pipeline reads.

A view has all that its server's log has, and what Kafka has came from that log. Another host may be behind: what Kafka
had already would be missing in the dump, and no consumer would notice.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from databus.errors import SourceUnavailable
from databus.progress import Progress
from databus.settings import Source
from databus.source_connection import connect_source
from databus_binlog.session import Session


@asynccontextmanager
async def connect_read(source: Source, progress: Progress | None) -> AsyncIterator[tuple[str, Session]]:
    """Log in to the host that the progress was read from; to the first that answers where it tells none.

    Raises SourceUnavailable, also while the reader is on its way to another host.
    """
    async with AsyncExitStack() as held:
        yield await _find(source, progress.server if progress else "", held)


async def _find(source: Source, server: str, held: AsyncExitStack) -> tuple[str, Session]:
    failures: list[str] = []
    for host in source.hosts:
        try:
            async with AsyncExitStack() as attempt:
                session = await attempt.enter_async_context(connect_source(source, host))
                if server in ("", session.server.identity):
                    held.push_async_exit(attempt.pop_all())
                    return host, session
                failures.append(f"database {host}: it is not the server that the pipeline reads ({server})")
        except SourceUnavailable as error:
            failures.append(str(error))
    raise SourceUnavailable("; ".join(failures))
