"""The parts that MariaDB and MySQL have in common: options, the admin account, the readiness check."""

import os
from pathlib import Path

import asyncmy
from asyncmy.errors import MySQLError

from devstack import debs
from devstack.engine import Instance
from devstack.server import NotReadyError, Server

USER = "databus"
SOCKET = "server.sock"


def user_option() -> list[str]:
    """Return the option by which a server runs as root, if we are root. The server writes only into its own folder."""
    return ["--user=root"] if os.geteuid() == 0 else []


def program(installation: Path, name: str) -> list[str]:
    """Return the command line that runs an unpacked server without configuration files."""
    share = installation / "usr/share/mysql"
    return [
        *debs.command(installation, f"usr/sbin/{name}"),
        "--no-defaults",
        f"--basedir={installation}/usr",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share}/charsets",
        f"--plugin-dir={installation}/usr/lib/mysql/plugin",
    ]


def options(instance: Instance, server_id: int) -> list[str]:
    """Return the options that MariaDB and MySQL share, and write the file that creates the admin account.

    The server resolves paths without a folder (socket, pid file, binlog) relative to its data directory.
    """
    account = instance.folder / "account.sql"
    account.touch(mode=0o600)
    account.write_text(
        "SET SESSION sql_log_bin = 0;\n"
        f"CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{instance.password}';\n"
        f"GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n"
    )
    temporary = instance.folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return [
        *user_option(),
        f"--datadir={instance.data}",
        f"--tmpdir={temporary}",
        f"--init-file={account}",
        "--bind-address=127.0.0.1",
        f"--port={instance.ports[0]}",
        f"--socket={SOCKET}",
        "--pid-file=server.pid",
        "--skip-name-resolve",
        "--max-connections=100",
        "--character-set-server=utf8mb4",
        "--default-time-zone=+00:00",
        "--innodb-buffer-pool-size=128M",
        f"--server-id={server_id}",
        "--log-bin=binlog",
        "--binlog-format=ROW",
        "--binlog-row-image=FULL",
        "--binlog-row-metadata=FULL",
        # Data in the kernel's cache survives the kill of a process, so flushing to disk would gain nothing.
        "--sync-binlog=0",
        "--innodb-flush-log-at-trx-commit=2",
    ]


async def ping(server: Server) -> None:
    """Log in and run a query. Raises NotReadyError if the login fails."""
    try:
        connection = await asyncmy.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, connect_timeout=5
        )
    except (OSError, MySQLError) as error:
        raise NotReadyError(str(error)) from error
    async with connection, connection.cursor() as cursor:
        await cursor.execute("SELECT 1")
