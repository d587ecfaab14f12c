"""The time of a database, in seconds as MariaDB logs it."""

from datetime import UTC, datetime

from common.connections import session_on
from common.waiting import eventually
from devstack import Server


async def next_second(server: Server) -> str:
    """Wait until the next second of a server's clock begins, and return it as ISO 8601."""
    async with session_on(server) as session:

        async def now() -> int:
            [(seconds,)] = await session.query("SELECT UNIX_TIMESTAMP()")
            return int(seconds)

        before = await now()

        async def passed() -> int | None:
            return seconds if (seconds := await now()) > before else None

        return datetime.fromtimestamp(await eventually(passed), UTC).isoformat()
