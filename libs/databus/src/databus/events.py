"""What travels from the reader to the publisher: tables, transactions, rows, DDL and positions.

The wire form is msgpack. Structs that travel once a row event are arrays with an integer tag, to be small; a `Table`
is a map, sent once a generation, and referred to by its fingerprint afterwards. A generation is
`(TableDefinition | SchemaDefinition)* Start (Heartbeat | Begin (TableDefinition | SchemaDefinition | RowsEvent |
OversizedRow | QueryEvent)* Commit)*`; what stands before `Start` are the tables of a pipeline's first start.

GTID sets can be long: only `Start` tells the whole one, the others what was executed since.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias, overload

import msgspec

from databus_binlog import Flavor, Position
from databus_wire.json_base64 import count_rows

#: Cells of one row image in table order; None is NULL, bytes are the canonical value text (docs/reference/values.md).
Row: TypeAlias = list[bytes | None]


class Action(StrEnum):
    """What happened to a table or its rows, in the words of the `databus` format."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    ALTER = "alter"
    CREATE = "create"
    DROP = "drop"
    TRUNCATE = "truncate"


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column, as information_schema or the binlog's own metadata describes it."""

    name: str
    #: DATA_TYPE, e.g. `int`
    type: str
    #: COLUMN_TYPE, e.g. `int(10) unsigned`
    raw_type: str
    nullable: bool = False
    unsigned: bool = False
    charset: str = ""
    #: labels of an ENUM or SET, in order
    values: tuple[str, ...] = ()
    auto_increment: bool = False
    generated: bool = False
    invisible: bool = False


class Index(msgspec.Struct, frozen=True):
    """One index with its column names in order."""

    name: str
    columns: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A table's schema at one point of its history."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    #: indexes into `columns`, in key order; empty without a primary key
    primary_key: tuple[int, ...] = ()
    indexes: tuple[Index, ...] = ()
    #: default character set of new columns; empty where it is not known
    charset: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that are equal exactly for equal schemas."""
        return blake2b(_fingerprint_encoder.encode(self), digest_size=8).hexdigest()


_fingerprint_encoder = msgspec.msgpack.Encoder(order="deterministic")


class TableDefinition(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A table as it is now: later events refer to it, and the schema history keeps it. Without columns: it is gone."""

    table: Table


class Begin(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A source transaction with captured changes begins."""

    #: counts captured transactions of the pipeline, for ever and without a gap
    transaction: int
    #: `uuid:n` (MySQL), `domain-server-sequence` (MariaDB) or empty
    gtid: str
    file: str
    server_id: int
    thread_id: int
    #: commit time in µs since the epoch, as exact as the server gives it
    time_us: int


class RowsEvent(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Row images of one table from one binlog event."""

    #: fingerprint of the `Table`
    table: str
    action: Action
    #: ordinal of the first row in its transaction, from 0
    row: int
    #: offsets of the binlog event in the transaction's file
    start: int
    end: int
    #: msgpack array of `Row`; an update alternates before and after images
    rows: msgspec.Raw
    #: the statement, where the server logs it, on the first of its events
    query: bytes | None = None


class QueryEvent(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """DDL on a captured table."""

    #: fingerprint of the `Table` as it is after the statement
    table: str
    action: Action
    #: UTF-8, with the table's name qualified
    query: bytes
    start: int
    end: int
    #: fingerprint of the table as it was; empty where it was not there or is not known
    before: str = ""


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """The transaction is complete; its end is where one may resume."""

    #: GTID set of what was executed since the event before that told it, captured or not
    executed: str
    file: str
    end: int
    xid: int | None


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """Nothing captured up to this place, where one may resume."""

    executed: str
    file: str
    end: int
    time_us: int


class Start(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=7):
    """A reader begins: from where, and at which server."""

    position: Position
    #: identity of the server whose files the positions name
    server: str
    flavor: Flavor
    time_us: int
    #: the server's log has all of the GTID set before the place, and nothing else; so it will be with later places
    in_order: bool


class SchemaDefinition(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=8):
    """The default character set of a schema; None: the schema is gone."""

    schema: str
    charset: str | None


class OversizedRow(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=9):
    """A row that was too large to be read: all that is left of it."""

    #: fingerprint of the `Table`
    table: str
    action: Action
    #: its ordinal in its transaction
    row: int
    #: offsets of the binlog event in the transaction's file
    start: int
    end: int
    #: bytes of the binlog event
    size: int


Event: TypeAlias = (
    TableDefinition | SchemaDefinition | Begin | RowsEvent | OversizedRow | QueryEvent | Commit | Heartbeat | Start
)

encode_events = msgspec.msgpack.Encoder().encode
decode_events = msgspec.msgpack.Decoder(list[Event]).decode
decode_rows = msgspec.msgpack.Decoder(list[Row]).decode


class PackedRows(Sequence[Row]):
    """Rows as they travel: unpacked when somebody looks at one, for who can do without reads them faster."""

    __slots__ = ("_rows", "packed")

    def __init__(self, packed: msgspec.Raw) -> None:
        self.packed = packed
        self._rows: list[Row] | None = None

    def __len__(self) -> int:
        return count_rows(self.packed)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        if self._rows is None:
            self._rows = decode_rows(self.packed)
        return self._rows[place]
