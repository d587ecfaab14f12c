"""`databus completion`: the completion script of a shell."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import shtab

from databus_cli.command_line import COMMANDS, make_parser


def run(options: argparse.Namespace) -> int:
    """Print the script. The shell completes with it alone, without starting databus."""
    parser = make_parser(COMMANDS)
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    sys.stdout.write(shtab.complete(parser, options.shell) + "\n")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a command and of its actions."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
