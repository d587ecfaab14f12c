"""Cases: SQL files with the expected messages under each statement. CONTRIBUTING.md describes the format."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import yaml

from databus_binlog import Flavor

FOLDER = Path(__file__).parent
_HEADER = re.compile(r"-- (route|publisher|partitions|servers|global|omit|show): (.+)")
_EXPECTED = re.compile(r"-- (?:(mariadb|mysql): )?((?:\S+ )?(?:->|!!) .+)")
_CONTINUED = re.compile(r"--  +(.+)")
_WIDTH = 120


@dataclass
class Step:
    """A statement, and the lines of the messages that it causes."""

    statement: str
    messages: list[str] = field(default_factory=list)


@dataclass
class Case:
    """The content of a file, with the messages for one kind of server."""

    steps: list[Step]
    #: rules as in `publisher.routes`
    routes: list[dict[str, Any]] = field(default_factory=list)
    #: other settings of the publisher
    publisher: dict[str, Any] = field(default_factory=dict)
    #: number of partitions of each topic
    partitions: int = 1
    #: kinds of servers that the case is for
    servers: tuple[str, ...] = get_args(Flavor)
    #: assignments to global variables of the server, for the duration of the case
    variables: list[str] = field(default_factory=list)
    #: members of keys and values to omit, besides those that are omitted from a format's messages by default
    omitted: set[str] = field(default_factory=set)
    #: members to show although they are omitted by default, and `key` to show the record's key
    shown: set[str] = field(default_factory=set)


def read_case(path: Path, server: str) -> Case:
    """Read a file.

    Raises ValueError for a message above all statements or inside one, and for a last statement without a semicolon.
    """
    case = Case([])
    statement: list[str] = []
    latest: list[str] = []  # messages; a continuation line belongs to the last one
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not case.steps and not statement and (header := _HEADER.fullmatch(line)):
            _set(case, *header.groups())
        elif expected := _EXPECTED.fullmatch(line):
            if statement or not case.steps:
                raise ValueError(f"{path.name}:{number}: a message must follow the statement that causes it")
            latest = case.steps[-1].messages if expected[1] in {None, server} else []
            latest.append(expected[2])
        elif latest and (continued := _CONTINUED.fullmatch(line)):
            latest[-1] += f" {continued[1]}"
        elif line and not line.startswith("--"):
            statement.append(line)
            if line.endswith(";"):
                case.steps.append(Step("\n".join(statement).removesuffix(";")))
                statement = []
    if statement:
        raise ValueError(f"{path.name}: the last statement has no semicolon")
    return case


def _set(case: Case, name: str, text: str) -> None:
    match name:
        case "route":
            route = yaml.safe_load(text)
            # By default, each format has an output and a topic of its own, both with the format's name.
            names = {"output": route["format"], "topic": route["format"]} if "format" in route else {}
            case.routes.append({"match": ["*.*"]} | names | route)
        case "publisher":
            case.publisher = yaml.safe_load(text)
        case "partitions":
            case.partitions = int(text)
        case "servers":
            case.servers = tuple(text.split())
        case "global":
            case.variables.append(text)
        case "omit":
            case.omitted |= set(text.split())
        case "show":
            case.shown |= set(text.split())


def written(steps: Iterable[Step]) -> str:
    """Return the text of these steps as in a file."""
    return "".join(f"\n{step.statement};\n" + "".join(map(_comment, step.messages)) for step in steps)


def _comment(message: str) -> str:
    return "\n".join(_wrapped(f"-- {message}")) + "\n"


def _wrapped(line: str) -> Iterator[str]:
    """Break a line at spaces, preferably after commas."""
    while len(line) > _WIDTH:
        at = line.rfind(", ", _WIDTH // 2, _WIDTH) + 1 or line.rfind(" ", 8, _WIDTH)
        if at < 0:
            break
        yield line[:at]
        line = f"--    {line[at + 1 :]}"
    yield line
