"""What `databus status` prints, once and with `--watch`."""

import json
from pathlib import Path

import pytest

from databus_cli import status
from databus_cli.__main__ import main
from databus_cli.status.sections import Values, lines
from databus_core.settings import Settings

FOUND: dict[str, Values] = {
    "lag": {"seconds": 1.5, "bytes": 1_234_567},
    "progress": {"file": "bin.000007", "offset": 1_234_567, "gtid_set": None},
    "leaders": {"reader": None, "publisher": "host:1"},
    "stream": {"backlog_bytes": None},
    "tables_in_doubt": [],
    "dead_letters": {"error": "Kafka is unavailable"},
}


def test_the_state_is_laid_out_in_few_lines_and_only_amounts_are_grouped_by_thousands() -> None:
    assert lines(Settings(name="shop"), FOUND) == [
        "pipeline shop",
        "lag:",
        "  seconds       1.5",
        "  bytes         1,234,567",
        "progress:",
        "  file          bin.000007",
        "  offset        1234567",
        "leaders:",
        "  reader        nobody",
        "  publisher     host:1",
        "stream: none",
        "tables in doubt: none",
        "dead letters: error Kafka is unavailable",
    ]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A configuration whose state is FOUND; the third time it is read, an interrupt comes."""
    reads = 0

    async def read(_: Settings) -> dict[str, Values]:
        nonlocal reads
        reads += 1
        if reads == 3:
            raise KeyboardInterrupt
        return FOUND

    monkeypatch.setattr(status, "read_sections", read)
    (tmp_path / "databus.yaml").write_text("name: shop")
    return str(tmp_path / "databus.yaml")


def test_what_cannot_be_read_is_in_the_exit_code(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json", "--config", config]) == 1
    assert json.loads(capsys.readouterr().out) == {"pipeline": "shop", **FOUND}


def test_watch_prints_the_state_until_an_interrupt(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--watch", "--json", "--interval", "0.1", "--config", config]) == 130
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert json.loads(first)["lag"] == FOUND["lag"]


def test_watch_dates_what_it_prints(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--watch", "--interval", "0.1", "--config", config]) == 130
    out = capsys.readouterr().out
    assert out.count("pipeline shop, 20") == 2
    assert out.count("  bytes         1,234,567\n") == 2


@pytest.mark.parametrize("interval", ["0", "soon", "nan"])
def test_a_wrong_interval_is_wrong_usage(interval: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["status", "--watch", "--interval", interval])
    assert ended.value.code == 2
    assert "is not a number of seconds" in capsys.readouterr().err
