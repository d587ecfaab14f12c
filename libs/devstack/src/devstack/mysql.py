"""MySQL 9, from the Debian packages of the unstable suite."""

from pathlib import Path

from devstack import cache, debs, sql
from devstack.engine import Instance
from devstack.programs import run
from devstack.server import Kind, Say, Server

_OPTIONS = [
    "--secure-file-priv=NULL",  # Debian's default is a folder that only the full package creates
    "--innodb-redo-log-capacity=64M",
]


class MySQL:
    """MySQL with GTIDs and full row metadata in the binlog."""

    kind: Kind = "mysql"
    user = sql.USER
    ports = 1
    proxies = 0
    timeout = 90.0

    def install(self, say: Say) -> Path:
        """Unpack the server and initialise a data directory."""

        def build(folder: Path) -> None:
            debs.unpack(self.kind, "mysql-server-core", folder, say, suite=debs.UNSTABLE)
            say("initialising a data directory")
            data = folder / "data"
            initialize = [*sql.user_option(), "--initialize-insecure", f"--datadir={data}", *_OPTIONS]
            run("initialising MySQL's data directory", [*sql.program(folder, "mysqld"), *initialize])
            (data / "auto.cnf").unlink()  # has the server UUID; each instance must create its own

        return cache.installed("mysql", build)

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Build the command line; there is no configuration file."""
        # A killed server leaves its socket's lock file. A new server refuses to start if any process has the pid that
        # this file contains.
        (instance.data / f"{sql.SOCKET}.lock").unlink(missing_ok=True)
        return [
            *sql.program(installation, "mysqld"),
            *sql.options(instance, server_id=2),
            *_OPTIONS,
            "--mysqlx=OFF",
            "--performance-schema=OFF",
            # As for the options of `sql.options`: what is not flushed to disk survives the kill of a process.
            "--innodb-doublewrite=OFF",
            "--innodb-flush-method=nosync",
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
        ]

    async def ping(self, server: Server) -> None:
        """Log in and run a query."""
        await sql.ping(server)
