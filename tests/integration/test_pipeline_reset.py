"""`databus status`, and `databus pipeline reset --to`: a pipeline continues exactly where the operator puts it."""

import asyncio
import json
import os
import pty
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from common.connections import Execute, session_on
from common.pipelines import Changes, Consume, MakePipeline, run_until_idle
from common.server_time import next_second
from databus_binlog import Position
from databus_cli.__main__ import main
from databus_core.kafka_progress import read_progress
from databus_core.settings import load
from devstack import Server
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.mysql_in_slow


class Published(NamedTuple):
    """A pipeline whose services are stopped, and whose topic has rows 1, 2 and 3 of table t."""

    pipeline: Pipeline
    changes: Changes
    #: id of a row → position before its transaction
    before: dict[int, Position]
    execute: Execute
    position: Callable[[], Awaitable[Position]]

    async def command(self, *arguments: str) -> int:
        """Run `databus pipeline` with these arguments, and return its exit code."""
        return await self.databus("pipeline", *arguments)

    async def databus(self, *arguments: str) -> int:
        """Run a command, and return its exit code."""
        options = [*arguments, "--config", str(self.pipeline.config)]
        try:
            return await asyncio.to_thread(main, options)
        except SystemExit as wrong_usage:
            return int(str(wrong_usage.code))

    async def next_ids(self, count: int) -> list[int]:
        """Publish what is in the binlog, and return the ids of the next rows in the topic: at least `count`."""
        await run_until_idle(self.pipeline)
        return [int(row[0]) for message in await self.changes.until(count) for row in message["Rows"]]


@pytest.fixture
async def published(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> Published:
    async def position() -> Position:
        async with session_on(source) as session:
            return await session.current_position()

    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await position()
    pipeline = make_pipeline(source, schema, reader={"start": f"{start.file}:{start.offset}"})
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    prepared = Published(pipeline, consumer, {}, execute, position)
    for number in (1, 2, 3):
        prepared.before[number] = await position()
        await execute("INSERT INTO t VALUES (%s)", number)
        await execute("FLUSH BINARY LOGS")
    assert await prepared.next_ids(3) == [1, 2, 3]
    return prepared


@pytest.mark.parametrize("form", ["file", "gtid"])
async def test_a_reset_to_an_earlier_position_publishes_again_from_there(
    published: Published, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    there = published.before[2]
    to = f"{there.file}:{there.offset}" if form == "file" else f"gtid:{there.gtid_set}"
    assert await published.command("reset", "--to", to, "--yes") == 0
    said = capsys.readouterr().err
    assert "has published everything before" in said
    if form == "file":
        assert "it goes back by" in said
        assert f"begins at {there.file}:{there.offset} = gtid:{there.gtid_set} of " in said
    else:
        assert "is not known" in said
    assert await published.next_ids(2) == [2, 3]
    progress = await read_progress(load(published.pipeline.config))
    assert progress
    assert progress.reset
    assert progress.reset.transaction > 1_600_000_000_000_000  # the time, which no number of transactions reaches
    assert progress.transaction == progress.reset.transaction + 2
    assert progress.start is None


async def test_a_reset_to_the_end_skips_what_was_not_published(
    published: Published, capsys: pytest.CaptureFixture[str]
) -> None:
    await published.execute("INSERT INTO t VALUES (4)")
    assert await published.command("reset", "--to", "latest", "--yes") == 0
    assert "of the binlog: the changes in it are never published" in capsys.readouterr().err
    await published.execute("INSERT INTO t VALUES (5)")  # the position is that of the reset, not of the start
    assert await published.next_ids(1) == [5]


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_reset_to_a_time_continues_at_the_first_transaction_of_that_time(published: Published) -> None:
    time = await next_second(published.pipeline.source)
    await published.execute("INSERT INTO t VALUES (4)")
    await published.execute("INSERT INTO t VALUES (5)")
    assert await published.next_ids(2) == [4, 5]
    assert await published.command("reset", "--to", f"time:{time}", "--yes") == 0
    assert await published.next_ids(2) == [4, 5]


async def test_a_reset_to_an_impossible_position_changes_nothing(
    published: Published, capsys: pytest.CaptureFixture[str]
) -> None:
    before = await read_progress(load(published.pipeline.config))
    for to, code, said in (
        ("newest", 2, "argument --to: expected latest, snapshot, earliest, FILE:OFFSET"),
        ("time:2026-11-20T10:00:00", 2, "has no time zone; append Z for UTC, or an offset such as +01:00"),
        ("no-such-log.000001:4", 1, "--to: no-such-log.000001:4: the server has no file no-such-log.000001"),
        ("time:2001-01-01T00:00:00Z", 1, "choose a later time, or earliest"),
        ("time:2101-01-01T00:00:00Z", 1, "choose an earlier time, or latest"),
    ):
        assert await published.command("reset", "--to", to, "--yes") == code
        assert said in capsys.readouterr().err.splitlines()[-1]
    assert await read_progress(load(published.pipeline.config)) == before


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_reset_is_confirmed_on_a_terminal_or_with_yes(
    published: Published, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(published.pipeline.config)
    before = await read_progress(settings)
    assert await published.command("reset", "--to", "latest") == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("is not a terminal: confirm it with --yes")
    ours, terminal = pty.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        for answer, code in ((b"\n", 1), (b"n\n", 1), (b"y\n", 0)):
            assert await read_progress(settings) == before
            os.write(ours, answer)
            assert await published.command("reset", "--to", "latest") == code
            assert f"Make pipeline {settings.name} begin at " in capsys.readouterr().err
    os.close(ours)
    progress = await read_progress(settings)
    assert progress
    assert progress.position is None
    assert progress.start


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_reset_is_refused_while_a_service_is_active(
    published: Published, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(published.pipeline.start_all, "publisher", "reader")
    assert await published.command("reset", "--to", "latest", "--yes") == 1
    assert "is the active reader: stop reader and publisher first" in capsys.readouterr().err


async def test_the_lag_is_shown_in_seconds_and_bytes(published: Published, capsys: pytest.CaptureFixture[str]) -> None:
    async def lag() -> dict[str, Any]:
        assert await published.databus("status", "--json") == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)["lag"]
        return found

    assert await lag() == {"seconds": 0.0, "bytes": 0}
    await published.execute("INSERT INTO t VALUES (4)")
    found = await lag()
    assert 0 <= found["seconds"] < 600
    assert 100 < found["bytes"] < 2000
    await run_until_idle(published.pipeline)
    assert await lag() == {"seconds": 0.0, "bytes": 0}


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_pipeline_is_shown_before_and_after_a_reset(
    published: Published, source: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    async def shown() -> dict[str, Any]:
        assert await published.databus("status", "--json") == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    progress = await read_progress(load(published.pipeline.config))
    assert progress
    assert progress.position
    state = await shown()
    assert state["pipeline"] == published.pipeline.name
    assert state["progress"]["begins_at"] is None
    assert state["progress"]["file"] == progress.position.file
    assert state["progress"]["offset"] == progress.position.offset
    assert state["progress"]["gtid_set"] == progress.position.gtid_set
    assert (state["progress"]["transaction"], state["progress"]["server"]) == (3, progress.server)
    assert state["source"] == {"host": f"{source.host}:{source.port}"}
    assert state["dead_letters"] == {"count": 0, "oldest": None, "tables": None}
    assert state["leaders"] == {"reader": None, "publisher": None}
    await asyncio.to_thread(published.pipeline.start_all, "publisher", "reader")
    state = await shown()
    assert all(state["leaders"].values())
    assert state["stream"]["backlog_bytes"] is not None
    for service in ("reader", "publisher"):
        await asyncio.to_thread(published.pipeline.stop, service)
    there = published.before[2]
    assert await published.command("reset", "--to", f"{there.file}:{there.offset}", "--yes") == 0
    state = await shown()
    assert state["progress"]["begins_at"] == "this position"
    assert (state["progress"]["file"], state["progress"]["offset"]) == (there.file, there.offset)
    assert state["source"] == {"host": None}
    assert await published.databus("status") == 0
    text = capsys.readouterr().out
    assert f"  offset        {there.offset}\n" in text
    assert await published.command("reset", "--yes") == 0  # without --to, reader.start decides again
    assert (await shown())["progress"]["begins_at"] == str(load(published.pipeline.config).reader.start)


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_progress_that_cannot_be_read_does_not_hide_the_rest(
    make_pipeline: MakePipeline, source: Server, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline = make_pipeline(source, schema, kafka={"bootstrap_servers": ["127.0.0.1:1"]})
    code = await asyncio.to_thread(main, ["status", "--json", "--config", str(pipeline.config)])
    state = json.loads(capsys.readouterr().out)
    assert code == 1
    for section in ("lag", "progress", "tables_in_doubt", "dead_letters"):
        assert "127.0.0.1:1" in state[section]["error"]
    assert state["leaders"] == {"reader": None, "publisher": None}
