"""How a loader reads one table: each chunk in a window of the stream, in a view that was proved, from where it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from databus_core.errors import FatalError, SourceUnavailable
from databus_core.table_states import Backfill, BackfillProgress
from databus_reader.backfill import loader as module
from databus_reader.backfill.loader import Loader
from databus_reader.backfill.window import Definition, WholeTable, Window
from unit.reader.backfilled import BOUNDARY, PLACE, TABLE, batch, chunk, key, limits_of, settings, turn

T = Backfill(id="1", schema="shop", table="t")
RESUMED = BackfillProgress(state="running", last_key=(b"2",), rows=2)


class Server:
    """A server with one table of six rows, which are read two at a time. `calls` is what it was asked, in order."""

    def __init__(self) -> None:
        self.server = SimpleNamespace(identity="uuid")
        self.calls: list[Any] = []
        self.key: Any = key()
        self.data_bytes = 1000
        self.engine, self.kind = "InnoDB", "BASE TABLE"

    async def query(self, sql: str, args: object = ()) -> list[tuple[object, ...]]:
        self.calls += [sql] if sql == "ROLLBACK" else []
        return [(6, self.data_bytes, self.engine, self.kind)]

    async def log_status(self) -> list[tuple[str, int]]:
        self.calls.append("end of log")
        return [PLACE]

    async def read(self, _: object, after: tuple[bytes] | None, limit: int) -> Any:
        first = int(after[0]) + 1 if after else 1
        self.calls.append(f"SELECT {first}")
        return chunk(batch(first, first + 1), last=first == 5)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()

    @asynccontextmanager
    async def connect(source: object, host: str) -> AsyncIterator[Server]:
        yield server

    async def start_view(session: object, boundary: object) -> None:
        server.calls.append(("view", boundary))

    async def start_current_view(session: object) -> object:
        server.calls.append("current view")
        return BOUNDARY

    async def read_table(*_: object) -> object:
        return TABLE

    async def chunk_key(*_: object) -> object:
        return server.key

    for name, fake in {
        "connect_source": connect, "connect_snapshot": connect, "start_view": start_view, "read_table": read_table,
        "start_current_view": start_current_view, "chunk_key": chunk_key, "ChunkReader": lambda *_: server,
        "_FIRST_PAUSE": 0,
    }.items():  # fmt: skip
        monkeypatch.setattr(module, name, fake)
    return server


@asynccontextmanager
async def loading(progress: BackfillProgress = RESUMED, backfill: Backfill = T) -> AsyncIterator[Loader]:
    found = settings()
    loader = Loader(found, "db1", "uuid", backfill, progress, limits_of(found), lambda: None)
    task = asyncio.create_task(loader.run())
    await turn()
    yield loader
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def opened(loader: Loader, number: int = 0) -> Window:
    """Open a window that the loader has requested, and let the loader read in it."""
    loader.windows[number].open(BOUNDARY)
    await turn()
    return loader.windows[number]


async def close(loader: Loader) -> None:
    """Close the first window, as the stream does."""
    window = loader.windows.pop(0)
    if isinstance(window.result, Definition):
        loader.definition = window.result
    window.closed.set_result(True)
    await turn()


async def test_nothing_is_read_before_the_window_is_open(server: Server) -> None:
    async with loading() as loader:
        assert (len(loader.windows), server.calls) == (1, [])
        assert isinstance((await opened(loader)).result, Definition)


async def test_a_chunk_is_read_in_a_proved_view_and_the_end_of_the_log_after_it(server: Server) -> None:
    async with loading() as loader:
        await opened(loader)
        await close(loader)
        server.calls.clear()
        window = await opened(loader)
        assert server.calls == [("view", BOUNDARY), "SELECT 3", "ROLLBACK", "end of log"]
        assert window.may_close(PLACE)
        assert not window.may_close((PLACE[0], PLACE[1] - 1))


async def test_at_most_two_chunks_are_read_ahead(server: Server) -> None:
    async with loading(BackfillProgress(state="running")) as loader:
        await opened(loader)
        await close(loader)
        await opened(loader)
        await opened(loader, 1)
        assert len(loader.windows) == 2
        await close(loader)
        await opened(loader, 1)
        assert [call for call in server.calls if "SELECT" in call] == ["SELECT 1", "SELECT 3", "SELECT 5"]


async def test_a_dropped_chunk_takes_the_one_behind_it_along_and_both_are_read_again(server: Server) -> None:
    async with loading() as loader:
        await opened(loader)
        await close(loader)
        dropped = [await opened(loader), await opened(loader, 1)]
        loader.give_up_windows()
        await turn()
        assert [each.closed.result() for each in dropped] == [False, False]
        assert isinstance((await opened(loader)).result, Definition)
        await close(loader)
        await opened(loader)
        assert [call for call in server.calls if "SELECT" in call] == ["SELECT 3", "SELECT 5", "SELECT 3"]


async def test_ddl_between_two_windows_reads_the_definition_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loading() as loader:
        waiting = asyncio.Event()
        monkeypatch.setattr(loader._limits, "wait", waiting.wait)
        await opened(loader)
        await close(loader)
        assert loader.windows == []
        loader.give_up_windows()
        waiting.set()
        await turn()
        assert isinstance((await opened(loader)).result, Definition)


async def test_a_table_without_key_is_read_in_a_current_view_whose_place_is_its_end(server: Server) -> None:
    server.key = None
    async with loading() as loader:
        await opened(loader)
        await close(loader)
        server.calls.clear()
        loader.windows[0].open(BOUNDARY)
        assert loader.windows[0].holds_stream
        window = await opened(loader)
        assert isinstance(window.result, WholeTable)
        assert server.calls == ["current view"]
        assert window.may_close(PLACE)


@pytest.mark.parametrize("any_size", [True, False])
async def test_a_large_table_without_key_is_loaded_only_if_the_request_allows_it(
    server: Server, any_size: bool
) -> None:
    server.key, server.data_bytes = None, 2**31
    async with loading(backfill=Backfill(id="1", schema="shop", table="t", any_size=any_size)) as loader:
        result = (await opened(loader)).result
        assert isinstance(result, Definition if any_size else FatalError)


@pytest.mark.parametrize(("engine", "kind"), [("MyISAM", "BASE TABLE"), ("InnoDB", "SYSTEM VERSIONED")])
async def test_a_table_that_no_view_shows_exactly_is_not_loaded(server: Server, engine: str, kind: str) -> None:
    server.key, server.engine, server.kind = None, engine, kind
    async with loading() as loader:
        assert isinstance((await opened(loader)).result, FatalError)


async def test_the_definition_is_not_older_than_the_boundary(server: Server) -> None:
    async with loading() as loader:
        await opened(loader)
        assert server.calls[0] == ("view", BOUNDARY)


async def test_another_server_behind_the_same_address_is_not_read(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.server.identity = "another"
    async with loading() as loader:
        assert (loader.windows, server.calls) == ([], [])
    assert "not the server whose binlog is read" in caplog.text


async def test_a_loader_ends_though_its_client_of_redis_swallows_the_cancellation(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def swallow() -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    found = settings()
    limits = limits_of(found)
    monkeypatch.setattr(limits, "wait", swallow)
    loader = Loader(found, "db1", "uuid", T, RESUMED, limits, lambda: None)
    task = asyncio.create_task(loader.run())
    await turn()
    await opened(loader)
    await close(loader)
    assert begun.is_set()
    task.cancel()
    _, running = await asyncio.wait([task], timeout=5)
    assert not running


async def test_a_view_that_waits_for_a_lock_is_opened_less_and_less_often(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream waits meanwhile, with the changes of all tables."""
    now, pauses = 0.0, []

    async def blocked(_: object) -> object:
        nonlocal now
        now += 5.0
        raise SourceUnavailable("a lock was not granted in time")

    async def pause(seconds: float) -> None:
        nonlocal now
        now += seconds
        pauses.append(seconds)

    monkeypatch.setattr(module, "start_current_view", blocked)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=pause))
    server.key = None
    async with loading(BackfillProgress(state="waiting")) as loader:
        for _ in range(5):
            await opened(loader)
            await close(loader)
            await opened(loader)
    assert pauses == [5.0, 15.0, 35.0, 60.0, 60.0]
