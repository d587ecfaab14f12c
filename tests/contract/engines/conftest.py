"""Fixtures that read the log of each kind of server with an engine that the test chooses."""

import re
from collections.abc import AsyncIterator

import pytest

from common.connections import RESET, Connect
from contract.engines.dumps import Log, Read, random_server_id
from databus_binlog import BinlogError, Engine, Position
from databus_binlog.session import Session
from devstack import Server


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
async def queries(login: Connect) -> AsyncIterator[Session]:
    """A session for queries, on a server whose GTID set the library mysql-replication can read."""
    async with login() as session:
        if re.search(":[a-z]", (await session.current_position()).gtid_set):
            await session.query(RESET["mysql"])  # another test has written GTIDs with tags
        yield session


@pytest.fixture
def read(login: Connect, schema: str) -> Read:
    """Read with an engine from a position to the end of the log, or to the first error."""

    async def run(engine: Engine, position: Position, **options: object) -> Log:
        log = Log([], {}, None)
        async with login() as session:
            options = {"wanted": lambda name, _: name == schema} | options
            stream = await session.dump(position, server_id=random_server_id(), follow=False, engine=engine, **options)
            try:
                async for events in stream:
                    log.events.extend(events)
                    log.tables.update(events.tables)
            except BinlogError as failure:
                return log._replace(failure=failure)
        return log

    return run
