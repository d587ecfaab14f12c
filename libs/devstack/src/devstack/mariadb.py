"""MariaDB, from the Debian packages of the machine's own release."""

from pathlib import Path

from devstack import cache, debs, sql
from devstack.engine import Instance
from devstack.programs import run
from devstack.server import Kind, Say, Server

#: Of the SQL scripts that mariadb-install-db executes, those that we need. We execute them ourselves, because
#: mariadb-install-db is a shell script that would start the server without the unpacked loader.
_SYSTEM_TABLES = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mysql_sys_schema.sql",
)
#: Root has no password, so it must not log in over TCP, only through the socket, which is in a private folder.
_ONLY_LOCAL_ROOT = """
DELETE FROM global_priv WHERE User = 'root' AND Host <> 'localhost';
DELETE FROM proxies_priv WHERE User = 'root' AND Host <> 'localhost';
"""


class MariaDB:
    """MariaDB with GTIDs and full row metadata in the binlog."""

    kind: Kind = "mariadb"
    user = sql.USER
    ports = 1
    proxies = 0
    timeout = 60.0

    def install(self, say: Say) -> Path:
        """Unpack the server and create its system tables."""

        def build(folder: Path) -> None:
            debs.unpack(self.kind, "mariadb-server-core", folder, say, alone="mariadb-server")  # for its plugins
            say("creating the system tables")
            data, share = folder / "data", folder / "usr/share/mysql"
            data.mkdir()
            tables = "".join((share / name).read_text() for name in _SYSTEM_TABLES)
            start = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL, @skip_auth_anonymous = 1;\n"
            bootstrap = ["--bootstrap", *sql.user_option(), f"--datadir={data}", "--innodb-log-file-size=32M"]
            command = [*sql.program(folder, "mariadbd"), *bootstrap]
            run("creating MariaDB's system tables", command, stdin=start + tables + _ONLY_LOCAL_ROOT)

        return cache.installed("mariadb-with-plugins", build)

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Build the command line; there is no configuration file."""
        return [
            *sql.program(installation, "mariadbd"),
            *sql.options(instance, server_id=1),
            f"--secure-file-priv={instance.data}",
            "--gtid-domain-id=0",
            "--gtid-strict-mode=ON",
            "--performance-schema=OFF",
            "--innodb-log-file-size=32M",
        ]

    async def ping(self, server: Server) -> None:
        """Log in and run a query."""
        await sql.ping(server)
