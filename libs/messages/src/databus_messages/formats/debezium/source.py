"""The `source` block, which describes the origin of a change."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from databus_binlog import Flavor
from databus_core.events import Begin, Table
from databus_messages.formats.base import SnapshotRows
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.schemas import INT32, INT64, STRING, Schema, struct
from databus_wire.templates import Slot

_MARKERS = ("true", "first", "first_in_data_collection", "last_in_data_collection", "last", "false", "incremental")
_MARKER = Schema(
    type="string",
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters={"allowed": ",".join(_MARKERS)},
    default="false",
)
_FIELDS = {
    "version": STRING,
    "connector": STRING,
    "name": STRING,
    "ts_ms": INT64,
    "snapshot": _MARKER,
    "db": STRING,
    "sequence": STRING.nullable(),
    "ts_us": INT64.nullable(),
    "ts_ns": INT64.nullable(),
    "table": STRING.nullable(),
    "server_id": INT64,
    "gtid": STRING.nullable(),
    "file": STRING,
    "pos": INT64,
    "row": INT32,
    "thread": INT64.nullable(),
    "query": STRING.nullable(),
}
_NAMES = list(_FIELDS)
_TS_MS, _SNAPSHOT, _TS_US, _TABLE, _GTID, _FILE, _POS, _THREAD = map(
    _NAMES.index, ("ts_ms", "snapshot", "ts_us", "table", "gtid", "file", "pos", "thread")
)


class SourceEncoder:
    """Encodes `source` in two parts: before and after the row number, the only field that differs within an event."""

    def __init__(self, codec: Codec, flavor: Flavor, prefix: str, version: str) -> None:
        self.schema = struct(f"io.debezium.connector.{flavor}.Source", _FIELDS)
        self._codec, self._constants = codec, (version, flavor, prefix)
        self._separators = codec.separators(self.schema)
        self._encoders = [codec.encoder(field) for _, field in self.schema.fields]
        self._encode_cached = lru_cache(1024)(self._encode)
        #: the bytes before the values of `ts_ms`, `ts_us` and `ts_ns`
        self._ts_ms = self._encode(0, *self._constants) + self._separators[_TS_MS]
        self._ts_us, self._ts_ns = [separator + codec.present for separator in self._separators[_TS_US : _TS_US + 2]]

    def before_row(self, table: Table, begin: Begin, pos: int, marker: str = "false") -> bytes:
        """Encode the part before the row number; `pos` is the event's start offset, `marker` is for `snapshot`."""
        cached, integer, time_us = self._encode_cached, self._codec.integer, begin.time_us
        milliseconds = self._ts_ms + integer(time_us // 1000) + cached(_SNAPSHOT, marker, table.schema, None)
        times = self._ts_us + integer(time_us) + self._ts_ns + integer(time_us * 1000)
        gtid = self._separators[_GTID] + self._encoders[_GTID](begin.gtid or None)
        file = cached(_FILE, begin.file) + self._separators[_POS] + integer(pos) + self._separators[_POS + 1]
        return b"".join((milliseconds, times, cached(_TABLE, table.name, begin.server_id), gtid, file))

    def after_row(self, thread: int, query: str | None) -> bytes:
        """Encode the part after the row number."""
        encode = self._encode_cached if query is None else self._encode  # queries rarely repeat
        return encode(_THREAD, thread or None, query) + self._separators[-1]

    def template(self, table: Table) -> tuple[list[bytes | Slot], list[bytes | Slot]]:
        """Return the parts of templates of both parts, for rows that have no statement; only for JSON."""
        separators, (ts_us, ts_ns) = self._separators, (self._ts_us, self._ts_ns)
        snapshot, name = self._encode(_SNAPSHOT, "false", table.schema, None), self._encode(_TABLE, table.name)
        before: list[bytes | Slot] = [
            *(self._ts_ms, Slot.TIME_MS, snapshot + ts_us, Slot.TIME_US, ts_ns, Slot.TIME_NS),
            *(name + separators[_TABLE + 1], Slot.SERVER_ID, separators[_GTID], Slot.GTID_OR_NULL),
            *(separators[_FILE], Slot.FILE, separators[_POS], Slot.START, separators[_POS + 1]),
        ]
        return before, [separators[_THREAD], Slot.THREAD, self._encode(_THREAD + 1, None) + separators[-1]]

    def of_statement(self, table: Table, begin: Begin, pos: int) -> dict[str, Any]:
        """Return the source of a DDL statement as a dict."""
        time_us = begin.time_us
        origin = (begin.server_id, begin.gtid or None, begin.file, pos, 0, begin.thread_id or None, None)
        values = (time_us // 1000, "false", table.schema, None, time_us, time_us * 1000, table.name or None, *origin)
        return dict(zip(_FIELDS, (*self._constants, *values), strict=True))

    def _encode(self, first: int, *values: Any) -> bytes:
        """Encode consecutive fields from index `first` on, each after its separator."""
        fields = zip(self._separators[first:], self._encoders[first:], values, strict=False)
        return b"".join([separator + encode(value) for separator, encode, value in fields])


def snapshot_markers(snapshot: SnapshotRows) -> Iterator[tuple[str, int]]:
    """Yield `source.snapshot` of the rows: each marker with the number of consecutive rows that have it."""
    count, done = len(snapshot.rows), 0
    has_ends = snapshot.first or snapshot.last or snapshot.first_of_table or snapshot.last_of_table
    if snapshot.is_incremental or not has_ends:
        yield "incremental" if snapshot.is_incremental else "true", count
        return
    for size in (1, count - 2, 1) if count > 1 else (count,):
        if size:
            yield _marker(snapshot, first=done == 0, last=done + size == count), size
        done += size


def _marker(snapshot: SnapshotRows, *, first: bool, last: bool) -> str:
    """Return a row's marker. The whole snapshot's markers take precedence over the table's, `last` over `first`."""
    if last and snapshot.last:
        return "last"
    if first and snapshot.first:
        return "first"
    if last and snapshot.last_of_table:
        return "last_in_data_collection"
    return "first_in_data_collection" if first and snapshot.first_of_table else "true"
