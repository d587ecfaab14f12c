"""`locate_time` finds the first transaction of a server's log that was committed at a time or later."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from common.connections import RESET, Execute, connected
from common.waiting import eventually
from databus_binlog import InvalidPosition, Login, Position
from databus_binlog.locate import locate
from databus_binlog.locate_time import locate_time, time_text
from databus_binlog.session import Session
from devstack import Server

#: a server id that no other test uses
SERVER_ID = 4721
#: 2026-11-20T10:00:00Z
TEN = 1_795_168_800
SECOND = 1_000_000

Commit = Callable[..., Awaitable[Position]]


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
async def execute(source: Server, schema: str) -> AsyncIterator[Execute]:
    """A connection with the test's table, whose log begins anew, at 10:00."""
    async with connected(source) as run:
        await run(f"USE {schema}")
        await run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)")
        await run(f"SET timestamp = {TEN}")
        await run(RESET[source.kind])
        yield run


@pytest.fixture
def commit(source: Server, execute: Execute, queries: Session) -> Commit:
    """Commit a transaction at a time, in seconds after 10:00, and return the position before it."""

    async def run(seconds: float, value: str = "1") -> Position:
        before = await queries.current_position()
        await execute(f"SET timestamp = {TEN + int(seconds)}")
        if source.kind == "mysql":
            await execute(
                f"SET original_commit_timestamp = {(TEN + int(seconds)) * SECOND + round(seconds % 1 * SECOND)}"
            )
        await execute(f"INSERT INTO t (v) VALUES ({value})")
        return before

    return run


@pytest.fixture
def account(own: Server) -> Login:
    return Login(host=own.host, port=own.port, user=own.user, password=own.password)


@pytest.fixture
def find(account: Login) -> Commit:
    """Find a time, in seconds after 10:00."""

    async def run(seconds: float) -> Position:
        found = await locate_time(account, TEN * SECOND + round(seconds * SECOND), server_id=SERVER_ID)
        return await locate(account, found.file, found.offset, server_id=SERVER_ID)

    return run


async def test_the_first_transaction_of_a_time_is_found_in_any_of_several_files(
    commit: Commit, find: Commit, execute: Execute
) -> None:
    before = {}
    for seconds in range(10, 130, 10):
        before[seconds] = await commit(seconds)
        if seconds % 30 == 0:
            await execute("FLUSH BINARY LOGS")
    for seconds in range(20, 130, 10):
        found = await find(seconds)
        assert found.gtid_set == before[seconds].gtid_set
        assert await find(seconds - 9) == found


async def test_all_transactions_of_a_second_are_found_although_a_file_ends_between_them(
    source: Server, commit: Commit, find: Commit, execute: Execute
) -> None:
    await commit(10)
    await execute("FLUSH BINARY LOGS")
    await commit(10)
    first = await commit(20)
    await commit(20)
    await execute("FLUSH BINARY LOGS")
    await commit(20)
    await execute("FLUSH BINARY LOGS")
    last = await commit(21)
    assert await find(20) == first
    assert await find(11) == first
    # If a server does not log fractions, a transaction of this second may have been committed then.
    assert await find(20.5) == (last if source.kind == "mysql" else first)


async def test_the_log_is_read_from_the_last_file_that_begins_before_the_time(
    commit: Commit, account: Login, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {}
    for seconds in range(10, 90, 20):
        await commit(seconds, "REPEAT('x', 100000)")
        before[seconds + 10] = await commit(seconds + 10)
        await execute("FLUSH BINARY LOGS")
    read: list[str] = []
    dump = Session.dump

    async def noting(session: Session, position: Position, **options: Any) -> Any:
        read.append(position.file)
        return await dump(session, position, **options)

    monkeypatch.setattr(Session, "dump", noting)
    found = await locate_time(account, (TEN + 55) * SECOND, server_id=SERVER_ID)
    assert (found.file, found.offset) == (before[60].file, before[60].offset)
    assert read[-1] == found.file
    assert len(read) <= 4


async def test_transactions_of_one_second_are_told_apart_if_the_server_logs_microseconds(
    source: Server, commit: Commit, find: Commit
) -> None:
    await commit(10)
    first, second = await commit(20.25), await commit(20.75)
    assert await find(20.25) == first
    assert await find(20.250001) == (second if source.kind == "mysql" else first)
    assert await find(20.75) == (second if source.kind == "mysql" else first)


async def test_later_transactions_may_be_older(commit: Commit, find: Commit, execute: Execute) -> None:
    """The beginning of the third file has an old time, for instance of a long statement; the next ones do not."""
    await commit(10)
    await execute("FLUSH BINARY LOGS")
    await commit(20)
    first = await commit(50)
    await commit(30)
    await execute("FLUSH BINARY LOGS")
    await commit(25)
    await commit(60)
    assert await find(40) == first
    assert await find(30) == first


async def test_a_time_at_which_the_log_had_not_begun_is_refused(
    commit: Commit, find: Commit, execute: Execute, queries: Session
) -> None:
    await commit(10)
    await commit(20)
    for seconds in (0, 9, 10):
        with pytest.raises(InvalidPosition, match=r"begins with a transaction of 2026-11-20T10:00:10Z, so it may lack"):
            await find(seconds)
    await execute("FLUSH BINARY LOGS")
    third = await commit(30)
    assert (await find(20)).file != third.file
    await purge(execute, queries, third.file)
    with pytest.raises(InvalidPosition, match=r"begins with a transaction of 2026-11-20T10:00:30Z, so it may lack"):
        await find(20)


async def purge(execute: Execute, queries: Session, file: str) -> None:
    """Purge the files before one; a server keeps them for a moment after a client has read them."""

    async def purged() -> bool:
        await execute(f"PURGE BINARY LOGS TO '{file}'")
        return next(iter(await queries.logs())) == file

    await eventually(purged, seconds=20)


async def test_a_time_after_the_end_of_the_log_is_refused(commit: Commit, find: Commit, execute: Execute) -> None:
    await commit(10)
    await commit(20)
    said = re.escape("has no transaction of 2026-11-20T10:00:21Z or later, it ends at 2026-11-20T10:00:20Z")
    with pytest.raises(InvalidPosition, match=said):
        await find(21)


@pytest.mark.parametrize("own", ["mysql"], indirect=True)
async def test_a_compressed_transaction_is_found(commit: Commit, find: Commit, execute: Execute) -> None:
    await execute("SET SESSION binlog_transaction_compression = ON")
    await commit(10)
    second = await commit(20.5)
    await commit(30)
    assert await find(11) == second
    assert await find(20.5) == second


@pytest.mark.parametrize("own", ["mysql"], indirect=True)
async def test_a_transaction_without_a_gtid_is_found(
    commit: Commit, find: Commit, execute: Execute, admin: Session
) -> None:
    for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
        await admin.query(f"SET GLOBAL gtid_mode = {mode}")
    try:
        await execute("FLUSH BINARY LOGS")
        await commit(10)
        second = await commit(20)
        found = await find(20)
        assert (found.gtid_set, found.offset) == ("", second.offset)
    finally:
        for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
            await admin.query(f"SET GLOBAL gtid_mode = {mode}")
        await execute("FLUSH BINARY LOGS")


@pytest.mark.parametrize(
    ("time_us", "text"), [(TEN * SECOND, "2026-11-20T10:00:00Z"), (TEN * SECOND + 5, "2026-11-20T10:00:00.000005Z")]
)
def test_a_time_is_printed_in_utc(time_us: int, text: str) -> None:
    assert time_text(time_us) == text
