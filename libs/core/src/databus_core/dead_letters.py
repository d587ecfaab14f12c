"""Dead letters: records of the pipeline's dead-letter topic, each of which describes a record that was not published.

The key of a dead letter identifies the change. The letter's value is the value of the original record, or empty if the
row was not read, or if the value could not be encoded or is too large for this topic as well. Everything else is in
headers: the original key and the original headers as they are, the rest as text. A tombstone means that the dead letter
was replayed or discarded.

A table that is parked (`databus_core.table_states`) has one dead letter, too. It stands for all changes that are left
out, has no value, and is deleted when the doubt about the table ends.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from databus_core.errors import PoisonError
from databus_core.events import full_name
from databus_core.settings.rules import DEFAULT_OUTPUT
from databus_core.table_states import TableDoubt

Reason: TypeAlias = Literal["too_large", "unencodable", "unread", "no_topic", "skipped", "parked"]

#: what the name of a header of the original record begins with in a dead letter
_RECORD_HEADER = "record."


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was not published: its destination, its change, and the error."""

    reason: Reason
    #: the error's message
    error: str
    #: topic of the original record
    topic: str
    #: partition of the original record; -1 if it depends on the key of a row that was not read
    partition: int
    #: message format of the original record
    format: str = "databus"
    #: output whose rule published the record
    output: str = DEFAULT_OUTPUT
    #: key of the original record
    key: bytes | None = None
    #: headers of the original record
    record_headers: tuple[tuple[str, bytes], ...] = ()
    schema: str
    #: empty for DDL on a database, except for the DROP that goes to the topic of a dropped table, which is named here
    table: str
    action: str
    gtid: str
    #: binlog file of the transaction
    file: str
    #: offset at which the binlog event starts in `file`
    start: int
    #: offset at which the binlog event ends
    end: int
    #: ordinal of the transaction in the pipeline
    transaction: int
    #: ordinal of the record's first row in the transaction, from 0
    row: int
    #: number of the record among the records that its format makes of the same rows, from 0
    record: int = 0
    #: size in bytes of the original value, or of the binlog event if the row was not read; 0 if there is no value
    size: int = msgspec.field(name="bytes")
    #: time of the commit at the source, in µs since the epoch
    time: int

    @property
    def table_name(self) -> str:
        """The name `schema.table`."""
        return full_name(self.schema, self.table)

    @property
    def is_tombstone(self) -> bool:
        """Whether the original record had no value: nothing else is without one if the record was made."""
        return self.reason in {"no_topic", "skipped"} and not self.size

    @property
    def origin(self) -> str:
        """The table and binlog position of the change, for messages."""
        return f"{self.table_name} at {self.file}:{self.start}"

    @property
    def id(self) -> bytes:
        """Key of the dead letter. When the same change fails again, its dead letter has the same key."""
        if self.reason == "parked":
            return parked_id(self.schema, self.table)
        change = (self.transaction, self.start, self.row, self.action, self.table_name)
        return msgspec.json.encode((*change, self.partition, self.topic, self.record))

    def headers(self) -> list[tuple[str, bytes]]:
        """Encode the dead letter's headers."""
        values = msgspec.to_builtins(self, builtin_types=[bytes])
        del values["record_headers"]
        about = [
            (name, value if isinstance(value, bytes) else str(value).encode())
            for name, value in values.items()
            if value is not None
        ]
        return about + [(_RECORD_HEADER + name, value) for name, value in self.record_headers]


def parked_letter(schema: str, table: str, doubt: TableDoubt) -> DeadLetter:
    """Describe a table that is parked. The letter has no topic, and its time is the time of the parking."""
    return DeadLetter(
        reason="parked",
        error=f"{full_name(schema, table)} is parked: {doubt.text}",
        topic="",
        partition=-1,
        format="",
        output="",
        schema=schema,
        table=table,
        action="park",
        gtid="",
        file=doubt.file,
        start=doubt.offset,
        end=doubt.offset,
        transaction=0,
        row=0,
        size=0,
        time=doubt.since_us,
    )


def parked_id(schema: str, table: str) -> bytes:
    """Return the key of a parked table's dead letter: there is one at a time."""
    return msgspec.json.encode(("parked", schema, table))


def read_headers(headers: Iterable[tuple[str, bytes | None]]) -> DeadLetter:
    """Decode a dead letter from its headers. Raises PoisonError."""
    try:
        values: dict[str, object] = {}
        record_headers: list[tuple[str, bytes | None]] = []
        for name, value in headers:
            if name.startswith(_RECORD_HEADER):
                record_headers.append((name.removeprefix(_RECORD_HEADER), value))
            else:
                values[name] = value if name == "key" or value is None else value.decode()
        values["record_headers"] = record_headers
        return msgspec.convert(values, DeadLetter, strict=False, builtin_types=[bytes])
    except (UnicodeDecodeError, msgspec.ValidationError) as error:
        raise PoisonError(f"a record in the dead-letter topic cannot be read: {error}") from error
