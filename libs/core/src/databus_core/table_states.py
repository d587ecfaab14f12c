"""What a pipeline knows about single tables besides their schemas: backfills, and tables that are in doubt.

A *backfill* loads the rows of one table into the stream, chunk by chunk (ADR 14). A table *in doubt* is `parked`: its
changes are not published any more, because the binlog does not show all of them. Its backfill makes it `filling`: the
table was emptied for consumers, its changes are published again, and its rows are being loaded.

The records are in a compacted topic in Kafka. Clients write what is wanted (`Backfill`, and `databus_core.skips.Skip`).
The publisher writes what was reached, in the same Kafka transaction as the rows.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias, TypeVar

import msgspec

from databus_core.errors import START_OVER, TableStatesCorrupt
from databus_core.events import full_name
from databus_core.skips import Skip

#: what a client wants a backfill to do
Wanted: TypeAlias = Literal["run", "pause", "cancel"]
#: `waiting` is that of a backfill without `BackfillProgress`; the last three are final
BackfillState: TypeAlias = Literal["waiting", "running", "paused", "done", "cancelled", "failed"]
#: why a table is loaded: a client asked for it; the pipeline starts with a snapshot; the table was captured later; or
#: it was in doubt
Cause: TypeAlias = Literal["request", "snapshot", "new_table", "heal"]

_K = TypeVar("_K")
_V = TypeVar("_V")
FINAL_STATES: frozenset[BackfillState] = frozenset({"done", "cancelled", "failed"})


class Backfill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to load one table."""

    #: unique in the pipeline; ids sort by the time of the request
    id: str
    schema: str
    table: str
    wanted: Wanted = "run"
    #: SQL condition of the rows to load; empty: all rows
    where: str = ""
    #: whether the table is emptied for consumers first, by a TRUNCATE message
    clean: bool = False
    #: the only output of `publisher.routes` that gets the rows; empty: all outputs of the table
    output: str = ""
    #: whether a table without a usable key may be loaded although it is larger than `backfill.keyless_limit`
    any_size: bool = False
    cause: Cause = "request"
    #: id of the request that it replaces, because the table was renamed; empty: none
    replaces: str = ""
    #: time of the request, in µs since the epoch
    requested_us: int = 0
    #: time before which it does not begin, in µs since the epoch
    begin_us: int = 0

    @property
    def name(self) -> tuple[str, str]:
        """Schema and table."""
        return self.schema, self.table

    @property
    def full_name(self) -> str:
        """The name `schema.table`."""
        return full_name(self.schema, self.table)


class BackfillProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a backfill has come, as of the pipeline's progress."""

    state: BackfillState
    #: name, type and collation of the key columns along which the table is read; empty: it is read as a whole
    key: tuple[str, ...] = ()
    #: values of these columns in the last row that was read, as canonical text; None: no chunk is loaded yet
    last_key: tuple[bytes, ...] | None = None
    #: whether the table was emptied for consumers; what is loaded since then is not complete before the end
    has_emptied: bool = False
    #: whether it starts over because keys mean other rows now: the table is emptied before the first row
    starts_over: bool = False
    #: rows that were read from the table; those that changed meanwhile were published as changes
    rows: int = 0
    #: rows of the table when the backfill began, as the database estimates them
    estimate: int = 0
    #: times in µs since the epoch; 0: not yet
    started_us: int = 0
    updated_us: int = 0
    #: why it failed
    error: str = ""

    @property
    def is_final(self) -> bool:
        """Whether the backfill has ended."""
        return self.state in FINAL_STATES


class TableDoubt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table whose rows in Kafka may differ from those in the database."""

    state: Literal["parked", "filling"]
    #: name of a `databus_changes.doubts.Reason`, in lower case; the publisher, `Parking` and `NewStart` have others
    reason: str
    #: what happened and where
    text: str
    #: position of the event that raised the doubt
    file: str
    offset: int
    #: when the table was parked, in µs since the epoch
    since_us: int
    #: id of the backfill that ends the doubt; empty: none is requested
    backfill: str = ""
    #: whether the publisher has found it, and the reader has not taken it over yet
    reported: bool = False


@dataclass
class TableStates:
    """The records of the topic."""

    #: by id
    backfills: dict[str, Backfill] = field(default_factory=dict)
    #: by id of the backfill
    progress: dict[str, BackfillProgress] = field(default_factory=dict)
    #: by (schema, table)
    doubts: dict[tuple[str, str], TableDoubt] = field(default_factory=dict)
    #: transactions to skip, each by its GTID or position
    skips: dict[str, Skip] = field(default_factory=dict)
    #: `source.include` and `source.exclude` as of the pipeline's progress; None: not known
    captured: tuple[list[str], list[str]] | None = None

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Apply one record; a record without a value deletes what its key names. Raises TableStatesCorrupt."""
        try:
            match _decode_key(key):
                case ("backfill", backfill):
                    _put(self.backfills, backfill, value, _decode_backfill)
                case ("progress", backfill):
                    _put(self.progress, backfill, value, _decode_progress)
                case ("doubt", schema, table):
                    _put(self.doubts, (schema, table), value, _decode_doubt)
                case ("skip", transaction):
                    _put(self.skips, transaction, value, _decode_skip)
                case ("captured",):
                    self.captured = _decode_captured(value) if value is not None else None
                case _:
                    raise _corrupt("it has an unknown key")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _corrupt(str(error)) from error

    def progress_of(self, backfill: str) -> BackfillProgress:
        """Return how far a backfill has come."""
        return self.progress.get(backfill) or BackfillProgress(state="waiting")

    def state(self, backfill: str) -> BackfillState:
        """Return the state of a backfill."""
        return self.progress_of(backfill).state

    def is_cancelled(self, backfill: Backfill) -> bool:
        """Return whether a client has cancelled a backfill, or too late the one that it replaces."""
        while backfill.wanted != "cancel":
            if (replaced := self.backfills.get(backfill.replaces)) is None:
                return False
            backfill = replaced
        return True

    def unfinished(self) -> list[Backfill]:
        """List the backfills that have not ended, the oldest request first."""
        return [each for key, each in sorted(self.backfills.items()) if self.state(key) not in FINAL_STATES]


def new_backfills(
    names: Sequence[tuple[str, str]],
    *,
    where: str = "",
    clean: bool = False,
    output: str = "",
    any_size: bool = False,
    cause: Cause = "request",
    begin_us: int = 0,
) -> list[Backfill]:
    """Make a request for each table, given as (schema, name). The ids sort by time, and within it as the tables do."""
    now_us = time.time_ns() // 1000
    suffixes: set[str] = set()
    while len(suffixes) < len(names):
        suffixes.add(secrets.token_hex(4))
    requested = f"{datetime.fromtimestamp(now_us / 1e6, UTC):%Y%m%dT%H%M%SZ}"
    return [
        Backfill(
            id=f"{requested}-{suffix}",
            schema=schema,
            table=name,
            where=where,
            clean=clean,
            output=output,
            any_size=any_size,
            cause=cause,
            requested_us=now_us,
            begin_us=begin_us,
        )
        for suffix, (schema, name) in zip(sorted(suffixes), names, strict=True)
    ]


def decode_states(records: Iterable[tuple[bytes, bytes | None]]) -> TableStates:
    """Decode the records of the topic, in order. Raises TableStatesCorrupt."""
    states = TableStates()
    for key, value in records:
        states.apply(key, value)
    return states


def backfill_key(backfill: str) -> bytes:
    """Return the key of a request's record."""
    return encode(("backfill", backfill))


def is_request(key: bytes) -> bool:
    """Return whether a record is of a kind that clients write. The publisher writes all others, and these at times."""
    return key.startswith((b'["backfill",', b'["skip",'))


def progress_key(backfill: str) -> bytes:
    """Return the key of the record of a backfill's progress."""
    return encode(("progress", backfill))


def doubt_key(schema: str, table: str) -> bytes:
    """Return the key of the record of a table in doubt."""
    return encode(("doubt", schema, table))


def read_doubt(key: bytes, value: bytes | None) -> tuple[str, str, TableDoubt | None] | None:
    """Return schema, table and doubt of a record, None as doubt if it has ended; None for other records."""
    match _decode_key(key):
        case ("doubt", schema, table):
            return schema, table, _decode_doubt(value) if value is not None else None
    return None


CAPTURED_KEY = b'["captured"]'

encode = msgspec.json.Encoder().encode
_decode_key = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_backfill = msgspec.json.Decoder(Backfill).decode
_decode_progress = msgspec.json.Decoder(BackfillProgress).decode
_decode_doubt = msgspec.json.Decoder(TableDoubt).decode
_decode_skip = msgspec.json.Decoder(Skip).decode
_decode_captured = msgspec.json.Decoder(tuple[list[str], list[str]]).decode


def _put(found: dict[_K, _V], key: _K, value: bytes | None, decode: Callable[[bytes], _V]) -> None:
    if value is None:
        found.pop(key, None)
    else:
        found[key] = decode(value)


def _corrupt(reason: str) -> TableStatesCorrupt:
    return TableStatesCorrupt(f"the table states in Kafka cannot be read: {reason}; {START_OVER}")
