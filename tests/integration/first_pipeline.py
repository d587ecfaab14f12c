"""A terminal in which docs/tutorial/first-pipeline.md can be followed, with a database as many have it."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

from common.connections import connected
from devstack import Server, Stack
from devstack.ports import HOST, free_ports
from devstack.server import at
from integration.tutorial import Terminal, terminal

#: stands in for the database's client: `-e SQL`, or SQL on standard input
_CLIENT = """
import asyncio, json, os, sys
import asyncmy

async def main():
    text = sys.argv[sys.argv.index("-e") + 1] if "-e" in sys.argv else sys.stdin.read()
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    async with await asyncmy.connect(**json.loads(os.environ["DATABASE"]), autocommit=True) as connection:
        async with connection.cursor() as cursor:
            for statement in "\\n".join(lines).split(";"):
                if statement.strip():
                    await cursor.execute(statement)

asyncio.run(main())
"""
_SECTIONS = ("reader", "publisher", "dumps", "spark")


async def _database(own: Stack) -> Server:
    """Start a MariaDB with its default options for the binlog, in which there is no account `databus` yet."""
    made = own.start("mariadb", "--binlog-format=MIXED", "--binlog-row-metadata=NO_LOG")
    root = at("mariadb", made.host, made.port, "root", secrets.token_urlsafe(12))
    async with connected(made) as execute:
        await execute(f"CREATE USER root@'%' IDENTIFIED BY '{root.password}'")
        await execute("GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION")
    async with connected(root) as execute:
        await execute(f"DROP USER {made.user}@'%'")
    return root


@asynccontextmanager
async def first_pipeline(
    own: Stack, redis: Server, kafka: Server, folder: Path, names: Mapping[str, str] = MappingProxyType({}), **more: str
) -> AsyncIterator[Terminal]:
    """Open the terminal. `names` are further names of a page, and what the test calls them; `more`, variables."""
    database = await _database(own)
    login = {"host": database.host, "port": database.port, "user": database.user, "password": database.password}
    addresses = dict(zip(_SECTIONS, (f"{HOST}:{port}" for port in free_ports(len(_SECTIONS))), strict=True))
    listen = {f"DATABUS__{section.upper()}__LISTEN": address for section, address in addresses.items()}
    pipeline = f"p{secrets.token_hex(4)}"
    known = {
        "db1:3306": f"{database.host}:{database.port}",
        "redis://localhost:6379/0": redis.url,
        "localhost:9092": kafka.url,
        "localhost:9103": addresses["spark"],
        "--name shop": f"--name {pipeline}",
        "pipeline shop": f"pipeline {pipeline}",
        "/home/you/first": str(folder / "first"),
    }
    stand_ins = {"mariadb": _CLIENT, "docker": ""}
    variables = {"DATABASE": json.dumps(login), "DATABUS__DUMPS__URL": f"http://{addresses['dumps']}"}
    async with terminal(folder, known | dict(names), stand_ins, variables | listen | more) as opened:
        yield opened
