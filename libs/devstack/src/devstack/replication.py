"""A primary and a replica of one kind of database, replicating by GTID, for failovers.

Their binlogs have different base names and their server ids differ, as in most production setups. The replica logs the
changes that it applies (log_slave_updates). It is not read-only.
"""

import asyncio
import secrets
from pathlib import Path
from typing import Any, Literal

import asyncmy

from devstack.server import DevstackError, Kind, Server
from devstack.stack import Stack

Database = Literal["mariadb", "mysql"]

_CATCH_UP_SECONDS = 60
_STOP: dict[Kind, str] = {"mariadb": "STOP SLAVE", "mysql": "STOP REPLICA"}
_RESET: dict[Kind, str] = {"mariadb": "RESET SLAVE ALL", "mysql": "RESET REPLICA ALL"}
_EXECUTED: dict[Kind, str] = {"mariadb": "@@GLOBAL.gtid_binlog_pos", "mysql": "@@GLOBAL.gtid_executed"}
_FOLLOW: dict[Kind, tuple[str, ...]] = {
    "mariadb": (
        # gtid_slave_pos of a former primary lacks the transactions it wrote itself; gtid_current_pos has them.
        "SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_current_pos",
        "CHANGE MASTER TO MASTER_HOST = '{0.host}', MASTER_PORT = {0.port}, MASTER_USER = '{0.user}',"
        " MASTER_PASSWORD = '{0.password}', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1",
        "START SLAVE",
    ),
    "mysql": (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{0.host}', SOURCE_PORT = {0.port}, SOURCE_USER = '{0.user}',"
        " SOURCE_PASSWORD = '{0.password}', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1,"
        " SOURCE_RETRY_COUNT = 86400, GET_SOURCE_PUBLIC_KEY = 1",
        "START REPLICA",
    ),
}
_WAIT: dict[Kind, str] = {
    "mariadb": "SELECT MASTER_GTID_WAIT(%s, %s)",
    "mysql": "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)",
}


class Pair:
    """A primary and its replica, each with its own folder under `home`.

    `options` are added to the command lines of both. `home` must be new, or belong to a pair that has not failed over.
    """

    def __init__(self, home: Path, kind: Database, *options: str) -> None:
        self.kind: Database = kind
        password = secrets.token_urlsafe(12)  # clients that fail over use the same password
        self._stacks = [Stack(home / name, own=True, password=password) for name in ("first", "second")]
        self._options = [
            (f"--server-id={101 + number}", f"--log-bin={name}", "--log-slave-updates=ON", *options)
            for number, name in enumerate(("first", "second"))
        ]
        self._servers: list[Server] = []
        self._primary = 0

    @property
    def servers(self) -> tuple[Server, Server]:
        """Both servers; a failover does not change their order."""
        first, second = self._servers
        return first, second

    @property
    def primary(self) -> Server:
        """The current primary."""
        return self._servers[self._primary]

    @property
    def replica(self) -> Server:
        """The current replica."""
        return self._servers[1 - self._primary]

    async def start(self) -> None:
        """Start both servers and make the second a replica of the first."""
        self._servers = list(await asyncio.gather(*(asyncio.to_thread(self._start, number) for number in (0, 1))))
        await self.follow()

    async def follow(self) -> None:
        """Let the replica replicate from the primary. After `promote`, the replica is the former primary."""
        statements = [statement.format(self.primary) for statement in _FOLLOW[self.kind]]
        await run(self.replica, _STOP[self.kind], *statements)

    async def caught_up(self, seconds: float = _CATCH_UP_SECONDS) -> None:
        """Wait until the replica has applied everything that the primary has committed by now.

        Raises DevstackError if that takes longer than `seconds`.
        """
        ((executed,),) = await run(self.primary, f"SELECT {_EXECUTED[self.kind]}")
        ((timed_out,),) = await run(self.replica, (_WAIT[self.kind], executed, seconds))
        if timed_out != 0:
            raise DevstackError(f"the replica of {self.kind} has not caught up after {seconds:g} s")

    async def promote(self) -> None:
        """Make the replica the primary. The former primary is not changed, and does not replicate."""
        await run(self.replica, _STOP[self.kind], _RESET[self.kind])
        self._primary = 1 - self._primary

    def pid(self, server: Server) -> int | None:
        """Return a server's process id; None if it does not run."""
        status = self._stacks[self._servers.index(server)].status()
        return next(entry.pid for entry in status if entry.kind == self.kind)

    async def kill(self, server: Server) -> None:
        """Kill a server with SIGKILL."""
        await asyncio.to_thread(self._stacks[self._servers.index(server)].kill, self.kind)

    async def restart(self, server: Server) -> None:
        """Kill a server, if it runs, and start it again with the same data and port."""
        number = self._servers.index(server)
        await asyncio.to_thread(self._stacks[number].restart, self.kind, *self._options[number])

    async def discard(self) -> None:
        """Kill both servers and remove their data."""
        for stack in self._stacks:
            await asyncio.to_thread(stack.discard)

    def _start(self, number: int) -> Server:
        return self._stacks[number].start(self.kind, *self._options[number])


async def run(server: Server, *statements: str | tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Run statements, each a text or a tuple of text and arguments, and return the rows of the last one."""
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    async with asyncmy.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            text, *arguments = (statement,) if isinstance(statement, str) else statement
            await cursor.execute(text, arguments or None)
        return list(await cursor.fetchall())
