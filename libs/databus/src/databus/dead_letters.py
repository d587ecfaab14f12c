"""Dead letters: records of the pipeline's dead-letter topic, each of which describes a record that was not published.

The key identifies the change. The value is that of the original record; it is empty if the value could not be encoded,
or is too large for this topic as well. Everything else is in headers, as text. A tombstone means that it was replayed.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from databus.errors import PoisonError

Reason: TypeAlias = Literal["too_large", "unencodable", "unread"]


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was not published: its destination, its change, and the error."""

    reason: Reason
    #: the error's message
    error: str
    #: where the record belongs
    topic: str
    #: -1 if it depends on the row, which was not read
    partition: int
    format: str = "databus"
    #: key of the original record
    key: bytes | None = None
    schema: str
    table: str
    action: str
    gtid: str
    #: binlog file of the transaction
    file: str
    #: offsets of the binlog event in `file`
    start: int
    end: int
    #: ordinal of the transaction in the pipeline, and of the (first) row in the transaction
    transaction: int
    row: int
    #: number of the record among those of the same rows, from 0
    record: int = 0
    #: size of the original value, or of the binlog event if the row was not read
    size: int = msgspec.field(name="bytes")
    #: time of the commit at the source, in µs since the epoch
    time: int

    @property
    def origin(self) -> str:
        """The table and binlog position of the change, for messages."""
        return f"{self.schema}.{self.table} at {self.file}:{self.start}"

    @property
    def id(self) -> bytes:
        """Key of the dead letter; it is the same when the same change fails again."""
        change = (self.transaction, self.start, self.row, self.action, f"{self.schema}.{self.table}")
        return msgspec.json.encode((*change, self.partition, self.topic, self.record))

    def headers(self) -> list[tuple[str, bytes]]:
        """Encode the record's headers."""
        values = msgspec.to_builtins(self, builtin_types=[bytes])
        return [
            (name, value if isinstance(value, bytes) else str(value).encode())
            for name, value in values.items()
            if value is not None
        ]


def read_headers(headers: Iterable[tuple[str, bytes]]) -> DeadLetter:
    """Decode a dead letter from its headers. Raises PoisonError."""
    try:
        values = {name: value if name == "key" else value.decode() for name, value in headers}
        return msgspec.convert(values, DeadLetter, strict=False, builtin_types=[bytes])
    except (UnicodeDecodeError, msgspec.ValidationError) as error:
        raise PoisonError(f"a record in the dead-letter topic cannot be read: {error}") from error
