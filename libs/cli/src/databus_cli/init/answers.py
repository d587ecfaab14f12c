"""What `databus init` has to know: from options, else from answers on a terminal, else the defaults."""

import argparse
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from databus_cli.arguments.init import SERVERS
from databus_cli.terminal import ask, notice
from databus_core.errors import UsageError
from databus_core.settings import RedisSection
from databus_core.settings.values import HostPort, Name, TablePattern


@dataclass(frozen=True)
class Answers:
    """What the configuration and the SQL are made of."""

    name: str
    server: str
    hosts: list[str]
    user: str
    tables: list[str]
    redis: str
    kafka: list[str]
    start: str


class _Question(NamedTuple):
    #: the option that answers it
    option: str
    text: str
    #: `{name}` is the pipeline's name
    default: str
    kind: Any


_QUESTIONS = (
    _Question("name", "Name of the pipeline, a part of topics and keys", "shop", Name),
    _Question("server", "Kind of the database (mariadb or mysql)", "mariadb", str),
    _Question("hosts", "Hosts of the database, as host:port", "127.0.0.1:3306", list[HostPort]),
    _Question("user", "Account for the services, which the SQL creates", "databus", str),
    _Question("tables", "Tables to capture, as schema.table with * and ?", "{name}.*", list[TablePattern]),
    _Question("redis", "URL of Redis", "redis://127.0.0.1:6379/0", str),
    _Question("kafka", "Brokers of Kafka, as host:port", "127.0.0.1:9092", list[HostPort]),
    _Question("start", "Begin with all rows (snapshot) or with changes from now on (latest)", "snapshot", str),
)
_CHOICES = {"server": SERVERS, "start": ("snapshot", "latest")}


def answers(options: argparse.Namespace) -> Answers:
    """Collect all answers. A wrong answer on a terminal is asked for again. Raises UsageError for a wrong option."""
    found: dict[str, Any] = {}
    for question in _QUESTIONS:
        default = question.default.format(**found)
        given = getattr(options, question.option)
        if given is None and sys.stdin.isatty():
            found[question.option] = _asked(question, default)
            continue
        try:
            found[question.option] = _valid(question, default if given is None else given)
        except ValueError as error:
            raise UsageError(f"--{question.option}: {error}") from error
    return Answers(**found)


def _asked(question: _Question, default: str) -> Any:
    while True:
        try:
            return _valid(question, ask(question.text, default))
        except ValueError as error:
            notice(str(error))


def _valid(question: _Question, answer: str | list[str]) -> Any:
    """Return an answer as the settings have it. Raises ValueError."""
    if question.option in _CHOICES and answer not in _CHOICES[question.option]:
        raise ValueError(f"must be one of {', '.join(_CHOICES[question.option])}, not {answer!r}")
    many = question.kind is not str and question.kind is not Name
    value = answer.replace(",", " ").split() if many and isinstance(answer, str) else answer
    try:
        if question.option == "redis":
            RedisSection(url=str(value))
        valid = TypeAdapter(question.kind).validate_python(value)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
    if not valid:
        raise ValueError("must not be empty")
    if question.option == "redis" and urlsplit(str(valid)).password:
        raise ValueError("the URL must not contain a password: put it into a file, and set redis.password_file")
    return valid
