"""Several read views of one position, while transactions that keep a sum are committed all the time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from common.connections import Connect, Execute, connected, session_on
from common.gtids import last_number
from databus_binlog import Position
from databus_binlog.session import Session
from databus_changes.catalog import read_table
from databus_changes.snapshot import views as views_module
from databus_changes.snapshot.ranges import key_ranges
from databus_changes.snapshot.select import Select
from databus_changes.snapshot.view import start_behind
from databus_changes.snapshot.views import View, open_views
from databus_changes.snapshot.xa_commits import executes_xa
from databus_core.errors import SourceNotReady
from databus_core.settings import Source
from databus_wire.packed_rows import PackedRows
from devstack import Server

ROWS, WRITERS, VIEWS = 200, 4, 4
#: transactions in a statement; MySQL's lock waits for its end
TRANSFERS = 10
#: moves money between rows of two tables, and logs this, in as many transactions
TRANSFER = f"""CREATE PROCEDURE transfer(n INT) BEGIN
  DECLARE giver, taker INT;
  WHILE n > 0 DO
    SET giver = FLOOR(RAND() * {ROWS}), taker = FLOOR(RAND() * {ROWS});
    START TRANSACTION;
    UPDATE giving SET amount = amount - 1 WHERE id = giver;
    UPDATE taking SET amount = amount + 1 WHERE id = taker;
    INSERT INTO log VALUES ();
    COMMIT;
    SET n = n - 1;
  END WHILE;
END"""
NUMBERS = ", ".join(f"({number}, 1000)" for number in range(ROWS))


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
def settings(own: Server) -> Source:
    return Source.model_validate({"hosts": [f"{own.host}:{own.port}"], "user": own.user, "password": own.password})


@pytest.fixture
async def logged_before(execute: Execute, login: Connect) -> int:
    """Create the tables; return the number of the last transaction before the first transfer."""
    for name in ("giving", "taking"):
        await execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, amount INT NOT NULL)")
        await execute(f"INSERT INTO {name} VALUES {NUMBERS}")
    await execute("CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT)")
    await execute(TRANSFER)
    async with login() as session:
        return last_number(await session.current_position())


@asynccontextmanager
async def transfers(server: Server, schema: str) -> AsyncIterator[None]:
    """Commit transfers on several connections during the block."""
    is_over = asyncio.Event()

    async def write() -> None:
        async with connected(server) as execute:
            await execute(f"USE {schema}")
            while not is_over.is_set():
                await execute(f"CALL transfer({TRANSFERS})")

    writers = [asyncio.create_task(write()) for _ in range(WRITERS)]
    try:
        yield
    finally:
        is_over.set()
        await asyncio.gather(*writers)


async def number(view: View, sql: str) -> int:
    """Return the number that a query returns in a view."""
    [batch] = [batch async for batch in view.batches(Select(sql, ()))]
    [[text]] = PackedRows(batch.rows)
    return int(text or 0)


async def require_one_position(views: Sequence[View], schema: str, before: int) -> None:
    """Fail unless all views have the same transfers, and exactly those before their position."""
    given = [await number(view, f"SELECT SUM(amount) FROM {schema}.giving") for view in views]
    taken = [await number(view, f"SELECT SUM(amount) FROM {schema}.taking") for view in views]
    logged = [await number(view, f"SELECT COUNT(*) FROM {schema}.log") for view in views]
    assert {each + other for each in given for other in taken} == {2 * 1000 * ROWS}
    assert set(logged) == {last_number(views[0].position) - before}
    assert len({view.position for view in views}) == 1


@pytest.fixture
def differing(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Results of the first attempts to open views of one position; without these, views that agree by chance."""
    first: list[None] = []

    async def start(sessions: Sequence[Session], end: Position) -> tuple[Position, bool] | None:
        return first.pop() if first else await start_behind(sessions, end)

    monkeypatch.setattr(views_module, "start_behind", start)
    return first


@pytest.mark.parametrize("attempts", [0, 1])
@pytest.mark.parametrize("repetitions", [3, pytest.param(50, marks=pytest.mark.slow)])
async def test_t13_views_have_one_position_while_others_commit(
    settings: Source,
    source: Server,
    schema: str,
    logged_before: int,
    differing: list[None],
    repetitions: int,
    attempts: int,
) -> None:
    if source.kind == "mysql" and attempts:
        pytest.skip("MySQL always takes the lock")
    positions = set()
    async with transfers(source, schema):
        for _ in range(repetitions):
            differing += [None] * attempts
            async with open_views(settings, settings.hosts[0], VIEWS) as views:
                assert len(views) == VIEWS
                positions.add(views[0].position)
                await require_one_position(views, schema, logged_before)
    assert len(positions) == repetitions


async def test_without_the_right_to_lock_there_is_one_view(
    settings: Source, source: Server, schema: str, logged_before: int, execute: Execute, differing: list[None]
) -> None:
    differing.append(None)
    account = f"{schema}_unprivileged"
    await execute(f"CREATE USER {account}@'%' IDENTIFIED BY 'secret'")
    await execute(f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account}@'%'")
    settings = settings.model_copy(update={"user": account, "password": SecretStr("secret")})
    async with session_on(source) as session:
        needs_lock = source.kind == "mysql" or await executes_xa(session)  # other tests commit XA transactions
    async with transfers(source, schema):
        if needs_lock:
            with pytest.raises(SourceNotReady, match="GRANT RELOAD"):
                await open_views(settings, settings.hosts[0], VIEWS).__aenter__()
        else:
            async with open_views(settings, settings.hosts[0], VIEWS) as views:
                assert len(views) == 1
                await require_one_position(views, schema, logged_before + 2)  # CREATE USER and GRANT
    await execute(f"DROP USER {account}@'%'")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("id BIGINT UNSIGNED PRIMARY KEY", [0, *range(10**15, 10**15 + 20_000), 2**64 - 1]),
        ("id INT, other INT DEFAULT 7, PRIMARY KEY (id, other)", [*range(-30_000, -10_000), 5, 2**31 - 1]),
        ("id SMALLINT PRIMARY KEY", [3]),
        ("id INT PRIMARY KEY", []),
        ("id INT, name INT PRIMARY KEY DEFAULT (id)", [*range(3)]),
    ],
)
async def test_the_ranges_of_a_table_have_every_row_once_in_order(
    execute: Execute, login: Connect, schema: str, key: str, values: list[int]
) -> None:
    await execute(f"CREATE TABLE t ({key}, filler CHAR(100) DEFAULT 'x')")
    for first in range(0, len(values), 5000):
        await execute(f"INSERT INTO t (id) VALUES {','.join(f'({each})' for each in values[first : first + 5000])}")
    async with login() as session:
        table = await read_table(session, schema, "t")
        assert table
        conditions = [each.condition(table) for each in await key_ranges(session, table, 4000)]
        found = [await session.query(f"SELECT id FROM {schema}.t WHERE {each or True}") for each in conditions]
    assert [row[0] for rows in found for row in sorted(rows)] == values
    if len(values) > 10_000:
        assert len(conditions) > 3
        assert max(map(len, found)) < 8000
