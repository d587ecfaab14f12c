"""Two databases of one kind, one the replica of the other by GTID, for failovers.

Their binlogs have different base names and their server ids differ, as after any failover in the field. The replica
logs what it applies; nothing but the roles kept here stops anybody from writing to it.
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
        # What a former primary wrote itself counts too; the replica's own position does not tell it.
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
    """A primary and its replica, each with its state in a folder of its own under `home`.

    `options` are added to the command lines of both. A pair begins anew: `home` must not exist, or hold a pair whose
    roles have not changed.
    """

    def __init__(self, home: Path, kind: Database, *options: str) -> None:
        self.kind: Database = kind
        password = secrets.token_urlsafe(12)  # who fails over knows but one
        self._stacks = [Stack(home / name, own=True, password=password) for name in ("first", "second")]
        self._options = [
            (f"--server-id={101 + place}", f"--log-bin={name}", "--log-slave-updates=ON", *options)
            for place, name in enumerate(("first", "second"))
        ]
        self._servers: list[Server] = []
        self._primary = 0

    @property
    def servers(self) -> tuple[Server, Server]:
        """Both, in an order that no failover changes."""
        first, second = self._servers
        return first, second

    @property
    def primary(self) -> Server:
        """The one to write to."""
        return self._servers[self._primary]

    @property
    def replica(self) -> Server:
        """The other one."""
        return self._servers[1 - self._primary]

    async def start(self) -> None:
        """Start both and let the second follow the first."""
        self._servers = list(await asyncio.gather(*(asyncio.to_thread(self._start, place) for place in (0, 1))))
        await self.follow()

    async def follow(self) -> None:
        """Make the replica follow the primary: at first, and after `promote` for the one that was the primary."""
        statements = [statement.format(self.primary) for statement in _FOLLOW[self.kind]]
        await run(self.replica, _STOP[self.kind], *statements)

    async def caught_up(self, seconds: float = _CATCH_UP_SECONDS) -> None:
        """Wait until the replica has applied all that the primary has committed by now."""
        ((executed,),) = await run(self.primary, f"SELECT {_EXECUTED[self.kind]}")
        ((outcome,),) = await run(self.replica, (_WAIT[self.kind], executed, seconds))
        if outcome != 0:
            raise DevstackError(f"the replica of {self.kind} has not caught up after {seconds:g} s")

    async def promote(self) -> None:
        """Make the replica the primary; the former one is left as it is, running or killed, and follows nobody."""
        await run(self.replica, _STOP[self.kind], _RESET[self.kind])
        self._primary = 1 - self._primary

    def pid(self, server: Server) -> int | None:
        """Give the process id of one; None when it does not run."""
        status = self._stacks[self._servers.index(server)].status()
        return next(entry.pid for entry in status if entry.kind == self.kind)

    async def kill(self, server: Server) -> None:
        """Kill one with SIGKILL."""
        await asyncio.to_thread(self._stacks[self._servers.index(server)].kill, self.kind)

    async def restart(self, server: Server) -> None:
        """Kill one, if it runs, and start it again on the same data and port."""
        place = self._servers.index(server)
        await asyncio.to_thread(self._stacks[place].restart, self.kind, *self._options[place])

    async def discard(self) -> None:
        """Kill both: nobody needs their data any more."""
        for stack in self._stacks:
            await asyncio.to_thread(stack.discard)

    def _start(self, place: int) -> Server:
        return self._stacks[place].start(self.kind, *self._options[place])


async def run(server: Server, *statements: str | tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Run statements, each alone or with its arguments, and give the rows of the last one."""
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    async with asyncmy.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            text, *arguments = (statement,) if isinstance(statement, str) else statement
            await cursor.execute(text, arguments or None)
        return list(await cursor.fetchall())
