"""`source`: where a change comes from."""

from functools import lru_cache
from typing import Any

from databus.events import Begin, Table
from databus.formats.debezium.codec import Codec
from databus.formats.debezium.schemas import INT32, INT64, STRING, Schema, struct
from databus_binlog import Flavor

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
_POS = list(_FIELDS).index("pos")


class SourceEncoder:
    """Encodes `source` around the number of the row in its event, which alone differs from row to row."""

    def __init__(self, codec: Codec, flavor: Flavor, prefix: str, version: str) -> None:
        self.schema = struct(f"io.debezium.connector.{flavor}.Source", _FIELDS)
        self._codec, self._fixed = codec, (version, flavor, prefix)
        self._joints = codec.joints(self.schema)
        self._data = [codec.data(field) for _, field in self.schema.fields]
        self._before_pos = lru_cache(256)(self._encode_before_pos)
        self._behind_thread = lru_cache(256)(self._encode_behind)

    def before_row(self, table: Table, begin: Begin, pos: int, marker: str = "false") -> bytes:
        """Encode what stands before the row's number; `pos` is the start of the event."""
        head = self._before_pos(
            table.schema, table.name, begin.time_us, begin.server_id, begin.gtid, begin.file, marker
        )
        return b"".join((head, self._codec.integer(pos), self._joints[_POS + 1]))

    def behind_row(self, thread: int, query: str | None) -> bytes:
        """Encode what stands behind the row's number."""
        return self._behind_thread(thread) if query is None else self._encode_behind(thread, query)

    def statement(self, table: Table, begin: Begin, pos: int) -> dict[str, Any]:
        """Give the source of a statement, not encoded."""
        head = self._head(table.schema, table.name, begin.time_us, begin.server_id, begin.gtid, begin.file, "false")
        return dict(zip(_FIELDS, (*head, pos, 0, begin.thread_id or None, None), strict=True))

    def _encode_before_pos(self, *facts: Any) -> bytes:
        values = zip(self._joints, self._data, self._head(*facts), strict=False)
        return b"".join(joint + encode(value) for joint, encode, value in values) + self._joints[_POS]

    def _encode_behind(self, thread: int, query: str | None = None) -> bytes:
        thread_joint, query_joint, last = self._joints[-3:]
        return b"".join((thread_joint, self._data[-2](thread or None), query_joint, self._data[-1](query), last))

    def _head(
        self, schema: str, table: str, time_us: int, server_id: int, gtid: str, file: str, marker: str
    ) -> tuple[Any, ...]:
        times = (time_us, time_us * 1000)
        return (*self._fixed, time_us // 1000, marker, schema, None, *times, table, server_id, gtid or None, file)
