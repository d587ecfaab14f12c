"""PostgreSQL, from the Debian packages of the machine's own release: the other database of a replica."""

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from devstack import cache, debs
from devstack.engine import Instance
from devstack.programs import run
from devstack.server import DevstackError, Kind, NotReadyError, Say, Server

USER = "databus"
#: ids of Debian's account `nobody`
_NOBODY = 65534
#: let `nobody` read all files, also where a program asks whether it could
_READ_ALL = ["--securebits=+no_setuid_fixup", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]


class PostgreSQL:
    """PostgreSQL. It refuses to run as root: then its processes are those of `nobody`, who may read all files."""

    kind: Kind = "postgresql"
    user = USER
    ports = 1
    proxies = 0
    timeout = 60.0

    def install(self, say: Say) -> Path:
        """Unpack the server and create a data directory; its admin account has no password yet."""

        def build(folder: Path) -> None:
            debs.unpack(self.kind, "postgresql", folder, say)
            say("creating a data directory")
            data = folder / "data"
            data.mkdir(mode=0o700)
            _give(data)
            options = [f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
            command = [*_command(folder, "initdb"), f"--pgdata={data}", *options]
            with _wrapped(folder):
                run("creating PostgreSQL's data directory", command, cwd=data)
            (data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")

        return cache.installed("postgresql", build)

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Set the password of the admin account, and build the command line."""
        _give(instance.data)
        server, folder = _command(installation, "postgres"), ["-D", str(instance.data)]
        statement = f"ALTER USER {USER} PASSWORD '{instance.password}'"
        single = [*server, "--single", *folder, "postgres"]
        run("setting PostgreSQL's password", single, stdin=statement, cwd=instance.data)
        variables = {
            "listen_addresses": "127.0.0.1",
            "port": instance.ports[0],
            "unix_socket_directories": "",
            "timezone": "UTC",
            # Data in the kernel's cache survives the kill of a process, so flushing to disk would gain nothing.
            "fsync": "off",
        }
        return [*server, *folder, *(part for name, value in variables.items() for part in ("-c", f"{name}={value}"))]

    async def ping(self, server: Server) -> None:
        """Log in and run a query."""
        try:
            async with await psycopg.AsyncConnection.connect(f"{server.url}/postgres", connect_timeout=5) as client:
                await client.execute("SELECT 1")
        except psycopg.OperationalError as error:
            raise NotReadyError(str(error)) from error


def _program(installation: Path, name: str) -> Path:
    return next(installation.glob(f"usr/lib/postgresql/*/bin/{name}"))


@contextmanager
def _wrapped(installation: Path) -> Iterator[None]:
    """Let a script stand in for `postgres`, so that initdb runs it with the unpacked loader, too."""
    program = _program(installation, "postgres")
    original = program.rename(program.with_name("postgres.original"))
    command = debs.command(installation, str(original.relative_to(installation)))
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(0o755)
    yield
    original.rename(program)


def _command(installation: Path, name: str) -> list[str]:
    """Return the command line that runs an unpacked program, as `nobody` if we are root; arguments can be appended."""
    command = debs.command(installation, str(_program(installation, name).relative_to(installation)))
    if os.geteuid() != 0:
        return command
    setpriv = shutil.which("setpriv")
    if not setpriv:
        raise DevstackError("PostgreSQL does not run as root, and there is no setpriv (package util-linux)")
    account = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    return [setpriv, *account, *_READ_ALL, *command]


def _give(data: Path) -> None:
    """Make the account that runs PostgreSQL the owner of a data directory, as it demands."""
    if os.geteuid() == 0:
        for path in (data, *data.rglob("*")):
            shutil.chown(path, _NOBODY, _NOBODY)
