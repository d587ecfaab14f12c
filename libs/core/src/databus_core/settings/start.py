"""Where a pipeline without progress begins: the values of `reader.start`.

The values are msgspec structs, not dataclasses, because pydantic-settings would expect JSON in an environment variable
that sets a dataclass.
"""

import re
from typing import Annotated, TypeAlias

import msgspec
from pydantic import Field, PlainValidator

from databus_binlog import GtidSet, InvalidPosition
from databus_binlog.times import parse_time


class StartLatest(msgspec.Struct, frozen=True):
    """At the end of the binlog."""

    def __str__(self) -> str:
        return "latest"


class StartSnapshot(msgspec.Struct, frozen=True):
    """At the end of the binlog, with a backfill of every captured table."""

    def __str__(self) -> str:
        return "snapshot"


class StartEarliest(msgspec.Struct, frozen=True):
    """At the oldest binlog file."""

    def __str__(self) -> str:
        return "earliest"


class StartAt(msgspec.Struct, frozen=True):
    """At an offset of a binlog file of the first host."""

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


class StartAfterGtids(msgspec.Struct, frozen=True):
    """After the transactions of `gtid_set`, which is a valid GTID set of MySQL or MariaDB."""

    gtid_set: str

    def __str__(self) -> str:
        return f"gtid:{self.gtid_set}"


class StartAtTime(msgspec.Struct, frozen=True):
    """At the first transaction that was committed at a time or later (`databus_binlog.locate_time`)."""

    #: ISO 8601 with a time zone
    time: str

    @property
    def time_us(self) -> int:
        """The time in µs since the epoch."""
        return parse_time(self.time)

    def __str__(self) -> str:
        return f"time:{self.time}"


class StartAfterDump(msgspec.Struct, frozen=True):
    """At the position of the dump with this id."""

    dump: str

    def __str__(self) -> str:
        return f"dump:{self.dump}"


AnyStart: TypeAlias = (
    StartLatest | StartSnapshot | StartEarliest | StartAt | StartAfterGtids | StartAtTime | StartAfterDump
)


#: the values that are names
_NAMED: dict[str, AnyStart] = {str(each): each for each in (StartLatest(), StartSnapshot(), StartEarliest())}


def parse_start(value: object) -> AnyStart:
    """Parse the value of `reader.start`, also one that is parsed already. Raises ValueError."""
    text = str(value)
    if text in _NAMED:
        return _NAMED[text]
    kind, _, rest = text.partition(":")
    if kind == "gtid" and rest.strip():
        _require_gtid_set(rest)
        return StartAfterGtids(rest)
    if kind == "time":
        parse_time(rest)
        return StartAtTime(rest)
    if kind == "dump" and rest:
        return StartAfterDump(rest)
    file, _, offset = text.rpartition(":")
    if re.search(r"\.\d+$", file) and offset.isdecimal() and int(offset) >= 4:
        return StartAt(file, int(offset))
    raise ValueError(
        "expected latest, snapshot, earliest, FILE:OFFSET (for example mysql-bin.000007:4), gtid:SET, time:TIME or "
        "dump:ID, not " + repr(text[:200])
    )


def _require_gtid_set(text: str) -> None:
    try:
        GtidSet.of_either(text)
    except InvalidPosition as error:
        raise ValueError(str(error)) from error


Start = Annotated[AnyStart, PlainValidator(parse_start), Field(title="position")]
