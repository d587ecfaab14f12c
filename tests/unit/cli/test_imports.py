"""What a command imports: `databus --version` must not wait for libraries that it does not use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from databus_cli.command_line import COMMANDS

FILE = str(Path(__file__).parents[2] / "fixtures" / "mariadb-binlog" / "x5.bin")
#: prints the top-level packages that a command line imports, without those of the standard library and of Cython
SCRIPT = """
import json, sys
from contextlib import redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
before = {name.partition(".")[0] for name in sys.modules}
with redirect_stdout(TextIOWrapper(BytesIO())), suppress(SystemExit):
    from databus_cli.__main__ import main
    main(sys.argv[1:])
after = {name.partition(".")[0] for name in sys.modules}
print(json.dumps([name for name in after - before - sys.stdlib_module_names if "cython" not in name]))
"""

OURS = {"databus_core", "databus_cli"}
#: packages that may be imported to print a binlog file as JSON
DECODING = OURS | {
    "databus_binlog",
    "databus_changes",
    "databus_messages",
    "databus_wire",
    "msgspec",
    "typing_extensions",
    "zstandard",
}


def imported(*arguments: str) -> set[str]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, *arguments]
    return set(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["no-such-command"], []])
def test_version_help_and_wrong_usage_import_only_our_own_packages(arguments: list[str]) -> None:
    assert imported(*arguments) == OURS


def test_the_help_of_binlog_imports_only_our_own_packages() -> None:
    assert imported("binlog", "--help") == OURS | {"databus_messages"}


def test_decoding_a_file_imports_only_what_decoding_needs() -> None:
    assert imported("binlog", "--quiet", FILE) <= DECODING


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command != "binlog"] + ["pipeline reset", "backfill start"]
)
def test_the_help_of_a_command_imports_only_our_own_packages(command: str) -> None:
    assert imported(*command.split(), "--help") <= OURS | {"databus_messages"}
