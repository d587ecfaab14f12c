"""How `databus check` prints what it finds."""

import pytest

from databus_cli.__main__ import main
from databus_cli.check import print_results
from databus_core.checks import Result, Warned
from databus_core.errors import SourceNotReady

HOST = "database db1:3306"
FOUND = [
    Result(HOST, "binlog_format", "ROW"),
    Result(HOST, "SELECT", error=SourceNotReady(f"{HOST}: user 'a' lacks SELECT on s.t: grant it\n{HOST}: and more")),
    Result("Redis", "memory", error=Warned("Redis: [little] is left")),
]


def test_each_result_has_its_verdict_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    print_results(FOUND, FOUND)
    assert capsys.readouterr().out == (
        "database db1:3306\n"
        "  ok       binlog_format          ROW\n"
        "  wrong    SELECT                 user 'a' lacks SELECT on s.t: grant it\n"
        "                                  and more\n"
        "Redis\n"
        "  warning  memory                 [little] is left\n"
        "1 ok, 1 warning, 1 wrong\n"
    )


def test_results_that_are_not_shown_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([], FOUND[:1])
    assert capsys.readouterr().out == "1 ok, 0 warning, 0 wrong\n"


def test_a_configuration_that_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--config", "/nonexistent/databus.yaml"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "/nonexistent/databus.yaml: No such file" in line
