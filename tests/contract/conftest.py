"""Databases for the contract tests only, with TLS and room for large rows. Tests may set their global variables."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import pytest

from common.connections import Connect, session_on
from databus_binlog import Tls
from databus_binlog.session import Session
from devstack import Kind, Server, Stack
from devstack.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The certificate authority that issues the certificate of `own`."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def start_own(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Kind], Server]]:
    """Start a database of a kind; it is started once and killed at the end of the session."""
    certificate = authority.issue("server")
    stack = Stack(tmp_path_factory.mktemp("own"), own=True)
    tls = (f"--ssl-ca={authority.ca}", f"--ssl-cert={certificate}", f"--ssl-key={certificate}")
    yield lambda kind: stack.start(kind, *tls, "--max-allowed-packet=128M")
    stack.discard()


@pytest.fixture(params=["mariadb", "mysql"])
def own(request: pytest.FixtureRequest, start_own: Callable[[Kind], Server]) -> Server:
    """Each kind of database in turn, on a server of the contract tests' own."""
    return start_own(request.param)


@pytest.fixture
async def queries(source: Server) -> AsyncIterator[Session]:
    """A session for queries on `source`."""
    async with session_on(source) as session:
        yield session


@pytest.fixture
def login(own: Server) -> Connect:
    """Connect to `own`, as the test account or another."""
    return partial(session_on, own)


@pytest.fixture
def trusted(authority: Authority) -> Tls:
    """TLS settings for an encrypted connection to `own`."""
    return Tls(ca=authority.ca)


@pytest.fixture
async def admin(login: Connect) -> AsyncIterator[Session]:
    """A session on `own` with all privileges."""
    async with login() as session:
        yield session
