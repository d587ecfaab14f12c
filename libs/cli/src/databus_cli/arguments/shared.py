"""Arguments that several commands have in common."""

from __future__ import annotations

import argparse
import json
from typing import TypeAlias

Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def describe(parser: argparse.ArgumentParser, description: str, epilog: str) -> None:
    """Set the texts before and after the arguments, which `--help` prints as they are."""
    parser.description, parser.epilog = description, epilog
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def add_actions(parser: argparse.ArgumentParser) -> Actions:
    """Let the command have actions; `options.action` is the name of the chosen one."""
    return parser.add_subparsers(title="actions", required=True, metavar="ACTION", dest="action")


def add_action(actions: Actions, name: str, summary: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Add an action. `summary` is its line in the command's help, the rest is as in `describe`."""
    action = actions.add_parser(name, help=summary)
    describe(action, description, epilog)
    return action


def add_tables(parser: argparse._ActionsContainer, what: str) -> None:
    """Add `--tables`. `what` is the part of its help that describes what is selected."""
    parser.add_argument(
        "--tables",
        nargs="+",
        action="extend",
        type=table_pattern,
        metavar="PATTERN",
        help=f"only {what}; schema.table with * and ?, as in source.include",
    )


def table_pattern(text: str) -> str:
    """Check a `schema.table` pattern."""
    from pydantic import ValidationError

    from databus_cli.selection import Selection

    try:
        Selection([text])
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a schema.table pattern") from None
    return text


def add_format_options(parser: argparse.ArgumentParser) -> None:
    """Add `--option`. `options.options` is a list of (name, value)."""
    parser.add_argument(
        "--option",
        dest="options",
        action="append",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="an option of the format, as in a route's options; a list is written as JSON; can be repeated",
    )


def _assignment(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if not value.startswith("["):
        return name, value
    try:
        return name, json.loads(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is not a JSON list: {error}") from None
