"""Fixtures with real servers for tests: each is started on first use and killed when the session ends.

Their state is in `.devstack/tests` of the root folder. If an environment variable names an existing server, that server
is used instead. Logs are kept until the next session starts.
"""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from devstack import Server, Stack
from devstack.cache import locked
from devstack.chromium import Chromium, install
from devstack.server import DevstackError


def _report(config: pytest.Config, kind: str, text: str) -> None:
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        reporter.write_line(f"devstack: {kind}: {text}")


@pytest.fixture(scope="session")
def devstack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The session's stack, to kill and restart servers."""
    sessions = request.config.rootpath / ".devstack" / "tests"
    _clear(sessions)
    stack = Stack(sessions / str(os.getpid()), partial(_report, request.config))
    yield stack
    stack.discard()


def _clear(sessions: Path) -> None:
    """Remove the state of ended sessions, and kill the servers of sessions that were killed."""
    with locked(sessions / "lock"):
        for home in sessions.iterdir():
            if home.is_dir() and (home.name == str(os.getpid()) or not Path("/proc", home.name).exists()):
                Stack(home).discard()
                shutil.rmtree(home)


@pytest.fixture(scope="session")
def mariadb(devstack: Stack) -> Server:
    """MariaDB; the account has all privileges."""
    return devstack.start("mariadb")


@pytest.fixture(scope="session")
def mysql(devstack: Stack) -> Server:
    """MySQL; the account has all privileges."""
    return devstack.start("mysql")


@pytest.fixture(scope="session")
def redis_server(devstack: Stack) -> Server:
    """Redis."""
    return devstack.start("redis")


@pytest.fixture(scope="session")
def kafka(devstack: Stack) -> Server:
    """Kafka, one broker."""
    return devstack.start("kafka")


@pytest.fixture(scope="session")
def secure_kafka(devstack: Stack) -> Server:
    """Kafka with listeners for SASL over TLS and for client certificates; `url` is the address of the unencrypted one.

    The server's folder has the section `kafka` of a configuration for each secure listener: `scram.json`, `mtls.json`.
    """
    return devstack.start("kafka-secure")


@pytest.fixture(scope="session")
def schema_registry(devstack: Stack) -> Server:
    """A schema registry."""
    return devstack.start("registry")


@pytest.fixture(scope="session")
def postgresql(devstack: Stack) -> Server:
    """PostgreSQL; the account is a superuser."""
    return devstack.start("postgresql")


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Chromium:
    """Chromium; without one for this machine, the test is skipped."""
    try:
        return install(partial(_report, request.config, "chromium"))
    except DevstackError as error:
        pytest.skip(str(error))
