"""The help of every command and action: it teaches by examples, which are valid, and fits a terminal."""

import argparse
import shlex
from collections.abc import Iterator

import pytest

from databus_cli.arguments.dump import FILE_FORMATS
from databus_cli.command_line import COMMANDS, make_parser
from databus_core.manifest import FileFormat


def parsers(parser: argparse.ArgumentParser, *path: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command and action with its parser."""
    yield " ".join(path), parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsers(inner, *path, name)


PARSERS = dict(parsers(make_parser(COMMANDS)))


@pytest.mark.parametrize("command", PARSERS)
def test_every_help_has_examples_and_fits_a_terminal(command: str) -> None:
    """argparse wraps all but these two texts."""
    description, epilog = PARSERS[command].description or "", PARSERS[command].epilog or ""
    assert max(map(len, [*description.splitlines(), *epilog.splitlines()])) <= 120
    assert f"  databus {command}".rstrip() in epilog


@pytest.mark.parametrize("command", PARSERS)
def test_every_example_is_a_valid_command_line(command: str) -> None:
    lines = [line.strip() for line in (PARSERS[command].epilog or "").replace("\\\n", "").splitlines()]
    for line in (line for line in lines if line.startswith("databus ")):
        # What follows is a comment, or the rest of a pipe.
        words = shlex.split(line.partition("   ")[0].partition(" | ")[0].partition(" > ")[0].partition(" >> ")[0])
        if "--help" not in words and "COMMAND" not in words and "$(" not in line:
            make_parser(COMMANDS).parse_args(words[1:])


def test_every_format_of_a_dump_can_be_downloaded() -> None:
    assert list(FileFormat) == list(FILE_FORMATS)
