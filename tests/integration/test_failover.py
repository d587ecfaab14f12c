"""Which host the reader resumes at, and why it refuses one: on real pairs of replicating servers."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from common.binlog_rows import ids
from common.connections import RESET
from databus_binlog import GtidSet, Position, Server
from databus_core.errors import Refusal, SourceNotReady, SourceRefused, SourceUnavailable
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.progress import Progress
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_reader.source.hosts import Hosts, SourceConnection
from devstack.replication import Pair, run
from devstack.server import Server as Database
from integration.host_account import ACCOUNT, address

STOP = {"mariadb": "STOP SLAVE SQL_THREAD", "mysql": "STOP REPLICA SQL_THREAD"}
START = {"mariadb": "START SLAVE SQL_THREAD", "mysql": "START REPLICA SQL_THREAD"}


def settings(*servers: Database, **reader: Any) -> Settings:
    hosts = [address(server) for server in servers]
    return Settings(name="shop", source={"hosts": hosts} | ACCOUNT, reader=reader)


async def published(server: Database) -> Progress:
    """Return the progress of a reader that has read this server's log to its end."""
    everything = settings(server)
    async with connect_source(everything.source) as session:
        return Progress(await session.current_position(), 1, 1, session.server.identity)


async def go_on(progress: Progress, *servers: Database, patience: float = 0.0) -> tuple[str, Position, Server]:
    """Return host, position and server that a reader resumes with."""
    async with Hosts(settings(*servers), patience).connect(progress, Health()) as connection:
        return connection.host, connection.position, connection.session.server


async def refusal(progress: Progress, server: Database) -> tuple[Refusal, str]:
    with pytest.raises(SourceRefused) as caught:
        await go_on(progress, server)
    return caught.value.reason, str(caught.value)


async def test_t18_another_host_resumes_by_gtid_without_the_files_of_the_first(pair: Pair) -> None:
    first, second = pair.servers
    progress = await published(first)
    assert progress.position and progress.position.file == "first.000001"
    assert await go_on(progress, first, second) == (address(first), progress.position, await server_of(first))
    await pair.kill(first)
    assert await go_on(progress, first, second) == (
        address(second),
        Position(progress.position.gtid_set),
        await server_of(second),
    )
    await pair.kill(second)
    with pytest.raises(SourceUnavailable) as caught:
        await go_on(progress, first, second)
    assert str(caught.value).count("server unavailable") == 2


@pytest.mark.parametrize("pair", ["mariadb"], indirect=True)
async def test_a_log_that_has_the_transactions_in_another_order_is_read_by_gtids(pair: Pair) -> None:
    first, _ = pair.servers
    for domain in (1, 2):
        await run(first, f"SET SESSION gtid_domain_id = {domain}", f"INSERT INTO shop.t VALUES ({domain}0)")
    end = await published(first)
    read_elsewhere = ",".join(gtid for gtid in end.position.gtid_set.split(",") if not gtid.startswith("1-"))
    place = msgspec.structs.replace(end.position, gtid_set=read_elsewhere)
    progress = msgspec.structs.replace(end, position=place)
    async with Hosts(settings(first)).connect(progress, Health()) as found:
        assert found.binlog_start == place
        stream = await found.session.dump(found.binlog_start, server_id=4711, follow=False)
        assert ids([event async for events in stream for event in events]) == [b"10"]
    in_order = msgspec.structs.replace(end, in_order=True)
    async with Hosts(settings(first)).connect(in_order, Health()) as found:
        assert found.binlog_start == Position("", end.position.file, end.position.offset)


async def server_of(database: Database) -> Server:
    everything = settings(database)
    async with connect_source(everything.source) as session:
        return session.server


async def test_t18_a_lagging_replica_is_refused_until_it_has_caught_up(pair: Pair) -> None:
    first, second = pair.servers
    await run(second, STOP[pair.kind])
    await run(first, "INSERT INTO shop.t VALUES (2)")
    progress = await published(first)
    reason, said = await refusal(progress, second)
    assert reason is Refusal.BEHIND
    assert said.startswith(f"database {address(second)}: behind: it lacks ")
    await pair.kill(first)
    with pytest.raises(SourceNotReady) as caught:
        await go_on(progress, first, second)
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        f"database {address(server)}" for server in pair.servers
    ]
    await run(second, START[pair.kind])
    # The missing transaction is in the second server's relay log, so this server catches up although the first is down.
    assert (await go_on(progress, first, second, patience=30))[0] == address(second)


async def test_t18_a_server_whose_log_was_reset_is_refused(pair: Pair) -> None:
    first, _ = pair.servers
    await run(first, "INSERT INTO shop.t VALUES (2)")
    progress = await published(first)
    await run(first, RESET[pair.kind])
    reason, said = await refusal(progress, first)
    assert (reason, "reset or has lost its end" in said) == (Refusal.RESET, True)
    assert "run `databus pipeline reset --to snapshot`" in said
    without_file = msgspec.structs.replace(progress, position=Position(progress.position.gtid_set))
    assert (await refusal(without_file, first))[0] is Refusal.RESET
    # A new log that is longer and has the same GTIDs is refused, too, unless an event starts at the progress's offset.
    for number in range(3, 60):
        await run(first, f"INSERT INTO shop.t VALUES ({number})")
    place = msgspec.structs.replace(progress.position, offset=progress.position.offset + 1)
    assert (await refusal(msgspec.structs.replace(progress, position=place), first))[0] is Refusal.RESET


async def test_t18_a_server_with_a_later_gtid_set_at_the_same_offset_is_refused(pair: Pair) -> None:
    first, _ = pair.servers
    progress = await published(first)
    await run(first, "INSERT INTO shop.t VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO shop.t VALUES (3)")
    moved = msgspec.structs.replace(progress.position, file="first.000002", offset=4)
    assert (await refusal(msgspec.structs.replace(progress, position=moved), first))[0] is Refusal.RESET


async def test_a_host_with_another_history_is_refused(pair: Pair) -> None:
    """The replica was promoted before it had everything, and was written to."""
    first, second = pair.servers
    await run(second, STOP[pair.kind])
    await run(first, "INSERT INTO shop.t VALUES (2)")
    progress = await published(first)
    await run(second, "INSERT INTO shop.t VALUES (22)", "INSERT INTO shop.t VALUES (33)")
    reason, said = await refusal(progress, second)
    assert reason is Refusal.OTHER_HISTORY
    assert "which was published, and has" in said
    assert "run `databus pipeline reset --to snapshot`" in said
    # With the second server's progress the first server is refused, too. It writes as many as the second server did:
    # with fewer it would only count as behind on MariaDB, whose GTID position has only the last GTID of each domain.
    await run(first, "INSERT INTO shop.t VALUES (4)", "INSERT INTO shop.t VALUES (5)")
    assert (await refusal(await published(second), first))[0] is Refusal.OTHER_HISTORY


async def test_a_host_that_purged_the_next_changes_is_refused(pair: Pair) -> None:
    first, second = pair.servers
    progress = await published(first)
    await run(second, "FLUSH BINARY LOGS")
    await run(first, "INSERT INTO shop.t VALUES (2)")
    await pair.caught_up()
    await run(second, "FLUSH BINARY LOGS")
    async with asyncio.timeout(20):
        while len(logs := await run(second, "SHOW BINARY LOGS")) > 1:  # MariaDB keeps an old file for a moment
            await run(second, f"PURGE BINARY LOGS TO '{logs[-1][0]}'")
    reason, said = await refusal(progress, second)
    assert (reason, "run `databus pipeline reset --to snapshot`" in said) == (Refusal.PURGED, True)


async def test_a_position_without_gtids_is_valid_only_for_its_own_server(pair: Pair) -> None:
    first, second = pair.servers
    full = await published(first)
    progress = msgspec.structs.replace(full, position=Position("", full.position.file, full.position.offset))
    reason, said = await refusal(progress, second)
    assert (reason, f"it is a position of server {full.server}" in said) == (Refusal.NO_GTIDS, True)
    # The position's own server finds the GTID set of the position. With this set another host can take over.
    _, position, server = await go_on(progress, second, first)
    assert position.file == "first.000001"
    assert GtidSet.parse(server.flavor, position.gtid_set) == GtidSet.parse(server.flavor, full.position.gtid_set)


async def test_a_start_that_no_host_has_reached_is_refused(pair: Pair) -> None:
    future = {"mariadb": "0-101-999", "mysql": "00112233-4455-6677-8899-aabbccddeeff:1-5"}[pair.kind]
    with pytest.raises(SourceRefused, match=f"it lacks {future}, which was published"):
        async with Hosts(settings(pair.primary, start=f"gtid:{future}"), 0.0).connect(Progress(), Health()):
            pass


async def test_a_server_that_refuses_while_it_is_read_is_not_asked_again_for_that_position(pair: Pair) -> None:
    first, second = pair.servers
    progress = await published(first)
    hosts = Hosts(settings(first, second), 0.0)
    seen: list[SourceConnection] = []
    for _ in range(2):
        async with hosts.connect(progress, Health()) as connection:
            seen.append(connection)
        await hosts.leave(progress, SourceRefused(Refusal.PURGED, f"{connection.host}: purged"))
    assert [connection.host for connection in seen] == [address(first), address(second)]
    said = [f"{address(server)}: purged; to start over .*" for server in (first, second)]
    with pytest.raises(SourceNotReady, match="\n".join(said)):
        async with hosts.connect(progress, Health()):
            pass
    further = await published(first)
    async with AsyncExitStack() as sessions:
        assert await hosts.log_in(
            address(first), msgspec.structs.replace(further, position=Position(further.position.gtid_set)), sessions
        )


async def test_a_dump_is_taken_from_the_host_that_is_read(pair: Pair) -> None:
    first, second = pair.servers
    source = settings(first, second).source
    async with connect_pipeline_host(source, await published(second)) as (host, _):
        assert host == address(second)
    async with connect_pipeline_host(source, None) as (host, _):
        assert host == address(first)
    with pytest.raises(SourceUnavailable, match="it is not the server that the pipeline reads"):
        async with connect_pipeline_host(settings(first).source, await published(second)):
            pass
