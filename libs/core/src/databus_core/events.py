"""The events that the reader sends to the publisher: tables, transactions, rows, DDL and positions.

They are encoded as msgpack. Each event is an array with an integer tag, to be small. A `Table` is a map, sent only if
it differs from the last one sent for the same table; events refer to it by its fingerprint.

A generation, which is one use of the pipe (see `databus_core.pipe`), has the events `(TableDefinition |
SchemaDefinition | StateRecord)* Start (Heartbeat | Prepared | Decided | StateRecord | Begin (TableDefinition |
SchemaDefinition | Skipped | RowsEvent | OversizedRow | QueryEvent | DatabaseEvent | Decided | SnapshotTruncate |
SnapshotEvent | StateRecord)* Commit)* End?`. A transaction with SnapshotTruncate, SnapshotEvent or only StateRecords is
not one of the source: it has no GTID and no XID.

Definitions and state records before `Start` are those that Kafka lacks: the definitions of all tables when a pipeline
begins, else of tables that were not known.

GTID sets can be long, so only `Start` contains the full set. `Commit`, `Heartbeat` and `Prepared` contain the GTIDs
that were executed since the last of these events.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from databus_binlog import ABSENT, Flavor, Position

#: The values of one row image in table order: None is NULL, bytes are a value's exact text (docs/reference/values.md).
#: Only in the rows of a partial event (`RowsEvent.partial`), a value may be ABSENT: see `is_absent`.
Row: TypeAlias = list[bytes | None]


def is_absent(value: object) -> bool:
    """Return whether a value is ABSENT: the row image does not contain its column.

    In an after image, the column was not changed; in a before image, it may have been.
    """
    return value is ABSENT


class Action(StrEnum):
    """What happened to a table or its rows; the values are those of the `databus` format."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    ALTER = "alter"
    CREATE = "create"
    DROP = "drop"
    TRUNCATE = "truncate"


#: what happens to rows, in the order in which compiled code numbers it
ROW_ACTIONS = Action.INSERT, Action.UPDATE, Action.DELETE


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column, as information_schema, a DDL statement or the binlog's metadata describes it."""

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
    #: generated and not stored
    virtual: bool = False
    invisible: bool = False
    #: the type in the statement that defined the column, if the server stores another one: BOOL or BOOLEAN for a
    #: `tinyint(1)`, JSON for MariaDB's `longtext`; empty if no such statement is known
    declared: str = ""

    @property
    def lacks_labels(self) -> bool:
        """Whether it is an ENUM or SET whose labels are not known; a server has none without labels."""
        return self.type in {"enum", "set"} and not self.values


class Index(msgspec.Struct, frozen=True):
    """One index and the names of its columns, in order."""

    name: str
    columns: tuple[str, ...]
    #: whether it can be a row key: PRIMARY, or UNIQUE over whole columns, which MariaDB does not index by their hash
    unique: bool = False


def full_name(schema: str, table: str) -> str:
    """Return a table's name as `schema.table`; without a table, the name of the schema."""
    return f"{schema}.{table}" if table else schema


def first_names(names: Sequence[str]) -> str:
    """Return names for a message, separated by commas; at most 20, and the rest is cut off."""
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "")


class Table(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A table's schema at one point of its history."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    #: indexes into `columns`, in key order; empty without a primary key
    primary_key: tuple[int, ...] = ()
    #: whether `primary_key` may be a unique key instead: only a table map names it, and it does not show which it is
    key_assumed: bool = False
    #: the primary key first; without one, the unique indexes first, in the server's order
    indexes: tuple[Index, ...] = ()
    #: default character set of new columns; empty if it is not known
    charset: str = ""

    @cached_property
    def row_key(self) -> tuple[int, ...]:
        """The key by which the server identifies rows, as indexes into `columns`; empty if there is none.

        It is the primary key, or without one the first unique index over columns that are NOT NULL and not virtual.
        """
        if self.primary_key:
            return self.primary_key
        positions = {c.name: position for position, c in enumerate(self.columns) if not c.nullable and not c.virtual}
        for index in self.indexes:
            if index.unique and positions.keys() >= {*index.columns}:
                return tuple(positions[name] for name in index.columns)
        return ()

    @cached_property
    def full_name(self) -> str:
        """The name `schema.table`."""
        return full_name(self.schema, self.name)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, which are the same for equal schemas only."""
        return blake2b(_fingerprint_encoder.encode(self), digest_size=8).hexdigest()


_fingerprint_encoder = msgspec.msgpack.Encoder(order="deterministic")


class TableDefinition(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A table's schema from here on, for later events and the schema history. A table without columns was dropped."""

    table: Table


class Begin(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A source transaction begins. It has captured changes, or changes the definition of a table or schema."""

    #: ordinal among the pipeline's transactions that have a `Begin`, also across failovers; only a reset leaves a gap
    transaction: int
    #: `uuid:n` or `uuid:tag:n` (MySQL), `domain-server-sequence` (MariaDB), or empty
    gtid: str
    #: binlog file of the transaction
    file: str
    #: id of the server that executed the transaction
    server_id: int
    #: id of the connection's thread on that server; 0 if it is not logged
    thread_id: int
    #: commit time in µs since the epoch, in the precision that the server logs
    time_us: int
    #: offset at which the event that begins the transaction starts in the file: BEGIN or XA START, in MariaDB the GTID
    #: event; for a statement outside of a transaction, the statement itself
    start: int = 0
    #: offset at which that event ends
    end: int = 0


class RowsEvent(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Row images of one table, from one binlog event."""

    #: fingerprint of the `Table`
    table: str
    action: Action
    #: ordinal in the transaction, from 0, of this event's first row
    row: int
    #: offset at which the binlog event starts in the transaction's file
    start: int
    #: offset at which the binlog event ends
    end: int
    #: msgpack array of `Row` (see databus_wire.packed_rows); before and after images alternate in updates
    rows: msgspec.Raw
    #: the SQL statement, if the server logs it and this is the first event of the statement
    query: bytes | None = None
    #: number of the table in the binlog
    table_id: int = 0
    #: whether values are ABSENT (`publisher.publish_partial`): in before images, and in after images of updates
    partial: bool = False


class QueryEvent(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """DDL on a captured table."""

    #: fingerprint of the `Table` after the statement; if the statement drops or renames it, of the `Table` before
    table: str
    action: Action
    #: the SQL statement, normally in UTF-8; if it names the table, the name is qualified with the schema
    query: bytes
    #: offset at which the binlog event starts in the transaction's file
    start: int
    #: offset at which the binlog event ends
    end: int
    #: fingerprint of the table before the statement; empty if the table did not exist or was not known
    before: str = ""


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """The transaction is complete; its end is a position to resume from."""

    #: GTID set executed since the last `Start`, `Commit`, `Heartbeat` or `Prepared`, also by transactions that are not
    #: captured
    executed: str
    #: binlog file in which the transaction ends
    file: str
    #: offset in that file at which the transaction ends
    end: int
    #: the transaction's id in the storage engine, if it is logged
    xid: int | None
    #: offset at which the transaction's last event starts in the file: XID, COMMIT, or a statement by itself
    start: int = 0


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """A position to resume from. There are no captured changes between the last event and this position."""

    #: GTID set executed since the last `Start`, `Commit`, `Heartbeat` or `Prepared`
    executed: str
    #: binlog file of the position
    file: str
    #: offset of the position in that file
    end: int
    #: commit time of the last transaction before the position, captured or not, in µs since the epoch
    time_us: int


class Start(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=7):
    """The reader begins to read, at this position of this server."""

    position: Position
    #: identity of the server that the files of the positions belong to
    server: str
    flavor: Flavor
    #: commit time of the last published transaction, in µs since the epoch; the present time if there is none
    time_us: int
    #: as in `Progress`, for this position and those of all later events
    in_order: bool
    #: whether the position does not follow the progress: all tables are loaded again
    anew: bool = False


class SchemaDefinition(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=8):
    """The default character set of a schema; None: the schema was dropped."""

    schema: str
    charset: str | None


class OversizedRow(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=9):
    """A row that was not read because its binlog event is larger than `reader.row_limit`."""

    #: fingerprint of the `Table`
    table: str
    action: Action
    #: ordinal of the row in its transaction, from 0
    row: int
    #: offset at which the binlog event starts in the transaction's file
    start: int
    #: offset at which the binlog event ends
    end: int
    #: size in bytes of the binlog event or of its inflated data, as in `databus_binlog.OversizedRows`
    size: int


class DatabaseEvent(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=11):
    """DDL on a captured database, which is a schema."""

    schema: str
    #: CREATE, ALTER or DROP
    action: Action
    #: the SQL statement, normally in UTF-8
    query: bytes
    #: offset at which the binlog event starts in the transaction's file
    start: int
    #: offset at which the binlog event ends
    end: int
    #: default character set after the statement; None if the database was dropped, or the character set is not known
    charset: str | None
    #: fingerprints of the captured tables that are dropped with the database
    dropped: tuple[str, ...] = ()


class StateRecord(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=12):
    """A record of the table states' topic (`databus_core.table_states`), to be written with the transaction."""

    key: bytes
    #: None deletes what the key names
    value: bytes | None


class SnapshotEvent(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=13):
    """Rows of a table as they are at the position of the transaction, loaded by a backfill; there may be none."""

    #: fingerprint of the `Table`
    table: str
    #: ordinal in the transaction, from 0, of the first row
    row: int
    #: msgpack array of `Row`, as in `RowsEvent`
    rows: msgspec.Raw
    #: when the rows were read, in µs since the epoch
    time_us: int
    #: the only output of `publisher.routes` that gets the rows; empty: all outputs of the table
    output: str = ""
    #: whether the rows are part of the snapshot with which the pipeline starts; otherwise they are incremental
    initial: bool = False
    #: whether these are the first rows of the table's backfill
    first_of_table: bool = False
    #: whether these are the last rows of the table's backfill
    last_of_table: bool = False
    #: whether these are the first rows of the snapshot with which the pipeline starts
    first: bool = False
    #: whether these are the last rows of the snapshot with which the pipeline starts
    last: bool = False


class SnapshotTruncate(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=14):
    """The table is emptied for consumers, because its rows are loaded again."""

    #: fingerprint of the `Table`
    table: str
    #: the only output of `publisher.routes` whose consumers are told; empty: all outputs of the table
    output: str = ""


class Skipped(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=15):
    """The open transaction is skipped: all its rows become dead letters. It follows the transaction's Begin."""


class Prepared(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=20):
    """An XA transaction with captured rows is prepared. Its rows come when it is committed.

    Its position is before the XA transaction. No captured changes are between the last event and this position.
    """

    #: as in `PreparedTransaction`
    xid: str
    #: GTID of the XA PREPARE; empty if it has none
    gtid: str
    #: GTID set executed since the last `Start`, `Commit`, `Heartbeat` or `Prepared`, without the XA PREPARE
    executed: str
    #: binlog file in which the transaction's group starts
    file: str
    #: offset at which it starts
    start: int
    #: time of the XA PREPARE, in µs since the epoch
    time_us: int


class Decided(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=21):
    """A prepared XA transaction is committed, by the source transaction around this event, or it is rolled back."""

    xid: str


class End(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=10):
    """The reader has sent all that was in the binlog, and ends (`--until-idle`)."""


Event: TypeAlias = (
    TableDefinition
    | SchemaDefinition
    | Begin
    | Skipped
    | RowsEvent
    | OversizedRow
    | QueryEvent
    | DatabaseEvent
    | StateRecord
    | SnapshotEvent
    | SnapshotTruncate
    | Commit
    | Heartbeat
    | Prepared
    | Decided
    | Start
    | End
)

encode_events = msgspec.msgpack.Encoder().encode
decode_events = msgspec.msgpack.Decoder(list[Event]).decode
