"""What `databus status` prints, once and with `--watch`."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from databus_cli import status
from databus_cli.__main__ import main
from databus_cli.status.texts import lines, sections
from databus_core.pipeline_status import PipelineStatus
from databus_core.pipeline_status.lag import PipelineLag
from databus_core.pipeline_status.positions import PipelinePosition
from databus_core.pipeline_status.requests import SkippedTransactions
from databus_core.pipeline_status.services import SourceHost, StreamBacklog
from databus_core.settings import Settings

POSITION = PipelinePosition(
    begins_at=None, file="bin.000007", offset=1_234_567, gtid_set=None, transaction=12, time=None, server=None
)
FOUND = PipelineStatus(
    pipeline="shop",
    time=datetime(2026, 11, 27, 9, 30, tzinfo=UTC),
    lag=PipelineLag(seconds=1.5, bytes=1_234_567),
    freshness={"reader": None, "publisher": 1.5},
    progress=POSITION,
    source=SourceHost(host="db1:3306"),
    leaders={"reader": None, "publisher": "host:1"},
    stream=StreamBacklog(backlog_bytes=None, limit_bytes=2**28),
    skips=SkippedTransactions(transactions=None),
    tables_in_doubt=[],
    backfills=[],
    ended_backfills=[],
    dead_letters=None,
    errors={"dead_letters": "Kafka is unavailable"},
)


def test_the_state_is_laid_out_in_few_lines_and_only_amounts_are_grouped_by_thousands() -> None:
    assert lines("shop", sections(FOUND)) == [
        "pipeline shop",
        "lag:",
        "  seconds       1.5",
        "  bytes         1,234,567",
        "freshness:",
        "  reader        not known",
        "  publisher     1.5",
        "progress:",
        "  file          bin.000007",
        "  offset        1234567",
        "  transaction   12",
        "source: host db1:3306",
        "leaders:",
        "  reader        nobody",
        "  publisher     host:1",
        "stream: limit bytes 268,435,456",
        "skips: none",
        "tables in doubt: none",
        "backfills: none",
        "dead letters: error Kafka is unavailable",
    ]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A configuration whose state is FOUND; the third time it is read, an interrupt comes."""
    reads = 0

    async def read(_: Settings) -> PipelineStatus:
        nonlocal reads
        reads += 1
        if reads == 3:
            raise KeyboardInterrupt
        return FOUND

    monkeypatch.setattr(status, "read_status", read)
    (tmp_path / "databus.yaml").write_text("name: shop")
    return str(tmp_path / "databus.yaml")


def test_what_cannot_be_read_is_in_the_exit_code(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json", "--config", config]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["pipeline"], found["lag"]) == ("shop", {"seconds": 1.5, "bytes": 1_234_567})
    assert found["dead_letters"] == {"error": "Kafka is unavailable"}
    assert not found.keys() & {"errors", "time"}


def test_watch_prints_the_state_until_an_interrupt(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--watch", "--json", "--interval", "0.1", "--config", config]) == 130
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert json.loads(first)["lag"]["seconds"] == 1.5


def test_watch_dates_what_it_prints(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--watch", "--interval", "0.1", "--config", config]) == 130
    out = capsys.readouterr().out
    assert out.count("pipeline shop, 2026-11-27 09:30:00 UTC") == 2
    assert out.count("  bytes         1,234,567\n") == 2


@pytest.mark.parametrize("interval", ["0", "soon", "nan"])
def test_a_wrong_interval_is_wrong_usage(interval: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["status", "--watch", "--interval", interval])
    assert ended.value.code == 2
    assert "is not a number of seconds" in capsys.readouterr().err
