"""What `databus pipeline` prints, and its wrong usage."""

import pytest

from databus_binlog import Position
from databus_cli.__main__ import main
from databus_cli.pipeline.target import Target, distance
from databus_cli.positions import described
from databus_core.progress import Progress

#: the number of the last file has one digit more
LOGS = {"bin.999998": 1000, "bin.999999": 2 * 2**30, "bin.1000000": 500}


def at(file: str, offset: int, server: str = "a") -> Progress:
    return Progress(Position("0-1-9", file, offset), server=server)


@pytest.mark.parametrize(
    ("published", "target", "said"),
    [
        (at("bin.999998", 4), at("bin.999998", 104), "it skips 100 bytes of the binlog"),
        (at("bin.999998", 4), at("bin.1000000", 100), "it skips 2.0 GiB of the binlog"),
        (at("bin.1000000", 100), at("bin.999999", 4), "it goes back by 2.0 GiB of the binlog"),
        (at("bin.999998", 4), at("bin.999999", 4 + 1023 + 25), "it skips 2.0 KiB of the binlog"),
        (at("bin.999998", 4), at("bin.999998", 4), "it neither skips nor repeats changes"),
        (at("bin.999997", 4), at("bin.999998", 4), "is not known"),
        (at("bin.999998", 4, "b"), at("bin.999998", 104), "is not known"),
        (at("bin.999998", 4), Progress(Position("0-1-9")), "is not known"),
    ],
)
def test_the_distance_to_a_position_is_measured_in_the_files_of_one_server(
    published: Progress, target: Progress, said: str
) -> None:
    assert said in distance(Target(target, "db1:3306", "a", LOGS), published)


def test_a_position_is_described_as_it_can_be_given() -> None:
    assert described(Position("0-1-9", "bin.000001", 4)) == "bin.000001:4 = gtid:0-1-9"
    assert described(Position("", "bin.000001", 4)) == "bin.000001:4"
    assert described(Position("0-1-9")) == "gtid:0-1-9"


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("newest", "argument --to: expected latest, snapshot, earliest, FILE:OFFSET"),
        ("time:2026-11-20T10:00:00", "has no time zone; append Z for UTC, or an offset such as +01:00"),
    ],
)
def test_a_wrong_position_is_wrong_usage(to: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "reset", "--to", to])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_every_line_of_the_help_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "reset", "--help"])
    printed = capsys.readouterr().out
    assert "time:2026-11-20T10:00:00Z" in printed
    assert max(map(len, printed.splitlines())) <= 120
