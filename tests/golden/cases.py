"""What every format makes of the binlogs here, without what is of the hour: the lines of `databus binlog --format`."""

import re
from pathlib import Path
from typing import NamedTuple

from databus.cli.binlog.files import read_files
from databus.cli.binlog.messages import Messages
from databus.formats import known
from devstack import Kind

FOLDER = Path(__file__).parent
KINDS: tuple[Kind, ...] = ("mariadb", "mysql")


class Case(NamedTuple):
    """A format with its options; its files are named for both."""

    format: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ",".join([self.format, *map("=".join, self.options)])


CASES = [*map(Case, known()), Case("databus", (("compat", "strict"),))]

#: members that tell when a record was made, or what was drawn for it
_OF_THE_HOUR = (
    (re.compile(rb'(?<="ts":)\d+(?=,"type")'), b"0"),  # canal
    (re.compile(rb'(?<="op":"[cdrtu]",)"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+'), b'"ts_ms":0,"ts_us":0,"ts_ns":0'),
    (re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"), b"random"),  # Maxwell
)


def path(kind: Kind, case: Case) -> Path:
    """Name the golden file of a case."""
    return FOLDER / kind / f"{case}.jsonl"


def records(kind: Kind, case: Case) -> bytes:
    """Give the lines of a case."""
    lines = Messages(case.format, dict(case.options), lambda *_: True)
    events = read_files([str(FOLDER / f"{kind}.bin")])
    text = b"".join(line for event, tables in events for line in lines.of(event, tables))
    for pattern, constant in _OF_THE_HOUR:
        text = pattern.sub(constant, text)
    return text
