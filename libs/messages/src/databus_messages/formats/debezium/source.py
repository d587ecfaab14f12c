"""`source`: where a change comes from."""

from functools import lru_cache
from typing import Any

from databus.events import Begin, Table
from databus_binlog import Flavor
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.schemas import INT32, INT64, STRING, Schema, struct

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
    "sequence": STRING.maybe(),
    "ts_us": INT64.maybe(),
    "ts_ns": INT64.maybe(),
    "table": STRING.maybe(),
    "server_id": INT64,
    "gtid": STRING.maybe(),
    "file": STRING,
    "pos": INT64,
    "row": INT32,
    "thread": INT64.maybe(),
    "query": STRING.maybe(),
}
_NAMES = list(_FIELDS)
_TS_MS, _SNAPSHOT, _TS_US, _TABLE, _GTID, _FILE, _POS = map(
    _NAMES.index, ("ts_ms", "snapshot", "ts_us", "table", "gtid", "file", "pos")
)


class SourceEncoder:
    """Encodes `source` around the number of the row in its event, which alone differs from row to row."""

    def __init__(self, codec: Codec, flavor: Flavor, prefix: str, version: str) -> None:
        self.schema = struct(f"io.debezium.connector.{flavor}.Source", _FIELDS)
        self._codec, self._fixed = codec, (version, flavor, prefix)
        self._joints = codec.joints(self.schema)
        self._data = [codec.data(field) for _, field in self.schema.fields]
        self._known = lru_cache(1024)(self._encode)
        self._ts_ms = self._encode(0, *self._fixed) + self._joints[_TS_MS]
        self._ts_us, self._ts_ns = [joint + codec.present for joint in self._joints[_TS_US : _TS_US + 2]]

    def before_row(self, table: Table, begin: Begin, pos: int, marker: str = "false") -> bytes:
        """Encode what stands before the row's number; `pos` is the start of the event."""
        known, integer, time_us = self._known, self._codec.integer, begin.time_us
        milliseconds = self._ts_ms + integer(time_us // 1000) + known(_SNAPSHOT, marker, table.schema, None)
        times = self._ts_us + integer(time_us) + self._ts_ns + integer(time_us * 1000)
        gtid = self._joints[_GTID] + self._data[_GTID](begin.gtid or None)
        file = known(_FILE, begin.file) + self._joints[_POS] + integer(pos) + self._joints[_POS + 1]
        return b"".join((milliseconds, times, known(_TABLE, table.name, begin.server_id), gtid, file))

    def behind_row(self, thread: int, query: str | None) -> bytes:
        """Encode what stands behind the row's number."""
        encode = self._known if query is None else self._encode
        return encode(_POS + 2, thread or None, query) + self._joints[-1]

    def statement(self, table: Table, begin: Begin, pos: int) -> dict[str, Any]:
        """Give the source of a statement, not encoded."""
        time_us, gtid = begin.time_us, begin.gtid or None
        times, place = (time_us, time_us * 1000), (begin.server_id, gtid, begin.file, pos, 0, begin.thread_id or None)
        told = (*self._fixed, time_us // 1000, "false", table.schema, None, *times, table.name, *place, None)
        return dict(zip(_FIELDS, told, strict=True))

    def _encode(self, first: int, *values: Any) -> bytes:
        """Encode some fields, from the one with this number on, each behind what stands before it."""
        fields = zip(self._joints[first:], self._data[first:], values, strict=False)
        return b"".join([joint + encode(value) for joint, encode, value in fields])
