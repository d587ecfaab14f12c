"""The state of a pipeline when a part of it cannot be read."""

import asyncio

import pytest

from databus_binlog import Position
from databus_core import pipeline_status
from databus_core.pipeline_status import reads
from databus_core.pipeline_status.lag import PipelineLag
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.table_states import TableDoubt, TableStates

DOUBT = TableDoubt(state="parked", reason="truncated", text="it was", file="bin.1", offset=4, since_us=0)


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka answers, Redis does not, and nothing waits for the database."""

    async def progress(_: Settings) -> Progress:
        return Progress(Position(file="bin.1", offset=4), transaction=7)

    async def states(_: Settings) -> tuple[TableStates, int]:
        return TableStates(doubts={("shop", "t"): DOUBT}), 1

    async def never(*_: object) -> PipelineLag:
        await asyncio.Event().wait()
        raise AssertionError

    async def no_dead_letters(_: object) -> None:
        return None

    monkeypatch.setattr(reads, "read_progress", progress)
    monkeypatch.setattr(reads, "read_states", states)
    monkeypatch.setattr(reads, "read_lag_of", never)
    monkeypatch.setitem(pipeline_status._SECTIONS, "dead_letters", no_dead_letters)


async def test_what_does_not_answer_hides_nothing_else() -> None:
    status = await pipeline_status.read_status(Settings(name="shop", redis={"url": "redis://127.0.0.1:1/0"}), 0.1)
    assert status.progress is not None
    assert (status.progress.file, status.progress.transaction) == ("bin.1", 7)
    assert status.tables_in_doubt is not None
    assert [each.table for each in status.tables_in_doubt] == ["t"]
    assert (status.lag, status.leaders, status.freshness) == (None, None, None)
    assert status.errors["lag"] == "no answer within 0.1 s"
    assert "Redis is unavailable" in status.errors["leaders"]
