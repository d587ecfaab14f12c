"""The form of a dead letter: a record of the pipeline's dead-letter topic that tells what could not be published.

Its key names the change; its value is the original's, or empty where that was too large for this topic too or could not
be made. Everything else stands in headers, as text. A record without a value (a tombstone) says that it was replayed.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from databus.errors import PoisonError

Reason: TypeAlias = Literal["too_large", "unencodable", "unread"]


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be published, where it belongs, and where it comes from."""

    reason: Reason
    error: str
    topic: str
    #: -1 where only the row would tell
    partition: int
    format: str = "databus"
    #: of the original record
    key: bytes | None = None
    schema: str
    table: str
    action: str
    gtid: str
    file: str
    #: offsets of the binlog event in `file`
    start: int
    end: int
    #: ordinals of the transaction in the pipeline and of the (first) row in the transaction
    transaction: int
    row: int
    #: of the records of the same rows, from 0
    record: int = 0
    #: of the original value, or of the row's event where it was not even read
    size: int = msgspec.field(name="bytes")
    #: of the commit at the source, µs since the epoch
    time: int

    @property
    def place(self) -> str:
        """Say where it comes from."""
        return f"{self.schema}.{self.table} at {self.file}:{self.start}"

    @property
    def id(self) -> bytes:
        """Key of the dead letter: the same for the same change, should it come twice."""
        place = (self.transaction, self.start, self.row, self.action, f"{self.schema}.{self.table}", self.partition)
        return msgspec.json.encode((*place, self.topic, self.record))

    def headers(self) -> list[tuple[str, bytes]]:
        """Give the headers of the record."""
        values = msgspec.to_builtins(self, builtin_types=[bytes])
        told = ((name, value) for name, value in values.items() if value is not None)
        return [(name, value if isinstance(value, bytes) else str(value).encode()) for name, value in told]


def read_headers(headers: Iterable[tuple[str, bytes]]) -> DeadLetter:
    """Read a dead letter from its headers. Raises PoisonError."""
    try:
        values = {name: value if name == "key" else value.decode() for name, value in headers}
        return msgspec.convert(values, DeadLetter, strict=False, builtin_types=[bytes])
    except (UnicodeDecodeError, msgspec.ValidationError) as error:
        raise PoisonError(f"a record in the dead-letter topic is no dead letter: {error}") from error
