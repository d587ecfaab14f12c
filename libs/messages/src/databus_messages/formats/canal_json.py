"""The `canal-json` format: canal's flat messages, one for each `Change`, which usually has all rows of a binlog event.

Every message has all members, in alphabetical order; records have no key. Choices that canal leaves open:

* `id` is the ordinal of the transaction in its pipeline, and 0 for rows of a dump.
* `gtid` is the transaction's own GTID; for rows of a dump, the GTID set of its position; empty if the source has none,
  and for rows of a backfill.
* `es` is the commit time in ms, in the precision that the source logs; for rows of a dump, when the dump was requested;
  for rows of a backfill, when they were read. `ts` is the time of encoding, and the only member that differs when a
  message is encoded again.
* `sqlType` has the types of the last row's values. They may differ from those of other rows: unsigned values above the
  signed range, and NULL in a JSON or SET column, have other types than the column's other values.
* `old` of a row has the columns that were changed in this row (canal itself adds those of the preceding rows).
* A message has no column that the binlog lacks (`publisher.publish_partial`). `old` has no column that the row before
  the update lacks.
* Rows of a dump or a backfill are INSERTs; those of a backfill have the header `databus.snapshot`: `initial` or
  `incremental`. Logged DML statements (`binlog_rows_query_log_events`) have no message.

Values: see `databus_messages.formats.canal_values`. Types of statements: see `databus_messages.formats.canal_ddl`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from sys import maxsize

import msgspec

from databus_core import names
from databus_core.events import ROW_ACTIONS, Action, Row, Table
from databus_messages.formats.absent import without_absent
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    KeyValueRecords,
    MessageSource,
    Record,
    SnapshotRows,
)
from databus_messages.formats.canal import EVENT_TYPES, CanalOptions, SqlType, pk_names, sql_type
from databus_messages.formats.canal_ddl import ddl_message
from databus_messages.formats.canal_values import row_writer
from databus_messages.formats.columns import invalid_value
from databus_messages.formats.table_cache import TableCache
from databus_wire.canal_records import CanalWriter
from databus_wire.rows_writer import RowsWriter
from databus_wire.templates import Slot, Template

_json = msgspec.json.Encoder().encode


class CanalJson(Format[CanalOptions]):
    """Encodes flat messages. `clock` returns seconds since the epoch."""

    options_type = CanalOptions
    has_database_statements = True
    accepts_absent = True

    def __init__(self, source: MessageSource, options: CanalOptions, clock: Callable[[], float] = time.time) -> None:
        super().__init__(source, options)
        self._clock = clock
        self._encoders = TableCache(lambda table: _FlatMessageEncoder(table, options.time_zone))

    def change(self, change: Change) -> Iterable[Record]:
        """Encode the rows as one message."""
        if change.partial:
            change = without_absent(change)
        begin = change.begin
        value = self._encoders[change.table].encode(
            change.action, change.rows, begin.time_us // 1000, begin.gtid, begin.transaction, self._now_ms()
        )
        return KeyValueRecords([None], [value])

    def rows_writer(self, table: Table) -> RowsWriter:
        """Return a compiled writer."""
        return self._encoders[table].rows_writer()

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Encode the statement as one message."""
        begin = statement.begin
        return (Record(None, ddl_message(statement, ts=self._now_ms(), number=begin.transaction, gtid=begin.gtid)),)

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Encode the rows as one INSERT."""
        if not snapshot.rows:
            return ()
        es, gtid, number = snapshot.time_us // 1000, snapshot.position.gtid_set, snapshot.transaction
        value = self._encoders[snapshot.table].encode(Action.INSERT, snapshot.rows, es, gtid, number, self._now_ms())
        kind = b"incremental" if snapshot.is_incremental else b"initial"
        return (Record(None, value, [(names.SNAPSHOT_HEADER, kind)] if snapshot.backfill else ()),)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


class _FlatMessageEncoder:
    """Encodes the messages of one table. What they have in common is encoded once."""

    def __init__(self, table: Table, time_zone: str) -> None:
        self._table = table
        self._writer = row_writer(table, time_zone)
        self._types = [sql_type(column) for column in table.columns]
        #: for each column whose `sqlType` depends on the value: its index, the length of `limit` (a shorter value is
        #: below it; `maxsize` if there is no limit), and the fields of its `SqlType`
        self._varying = [
            (index, len(str(kind.limit)) if kind.limit else maxsize, *kind)
            for index, kind in enumerate(self._types)
            if kind.varies
        ]
        #: types of the columns in `_varying` → encoded `sqlType`
        self._sql_types: dict[tuple[int, ...], bytes] = {}
        self._parts_of = {action: self._parts(kind) for action, kind in EVENT_TYPES.items()}

    def _parts(self, kind: str) -> tuple[bytes, ...]:
        """Return what is before, between and after the values of data, es, gtid, id, old, sqlType and ts."""
        types = {column.name: column.raw_type for column in self._table.columns}
        return (
            b'{"data":',
            b',"database":%b,"es":' % _json(self._table.schema),
            b',"gtid":',
            b',"id":',
            b',"isDdl":false,"mysqlType":%b,"old":' % _json(types),
            b',"pkNames":%b,"sql":"","sqlType":' % _json(pk_names(self._table)),
            b',"table":%b,"ts":' % _json(self._table.name),
            b',"type":%b}' % _json(kind),
        )

    def rows_writer(self) -> CanalWriter:
        """Return a compiled writer of what `encode` returns."""
        insert, update, delete = (self._message(EVENT_TYPES[action]) for action in ROW_ACTIONS)
        no_rows: Row = [None] * len(self._types)
        return CanalWriter(
            self._writer, (insert, update, delete), self._sql_type if self._varying else self._sql_type(no_rows)
        )

    def _message(self, kind: str) -> tuple[bytes, Template, bytes, Template]:
        data, es, gtid, number, old, types, ts, end = self._parts(kind)
        before_old = es, Slot.TIME_MS, gtid, Slot.GTID, number, Slot.ORDINAL, old
        return data, Template(before_old), types, Template((ts, Slot.NOW_MS, end))

    def encode(self, action: Action, rows: Sequence[Row], es: int, gtid: str, number: int, ts: int) -> bytes:
        """Encode a message of one or more rows. `number` is its `id`; `es` and `ts` are in ms.

        Raises PoisonError if a value does not fit its column.
        """
        try:
            data, old = self._images(action, rows)
            types = self._sql_type(rows[-1])
        except ValueError as error:
            raise invalid_value(self._table, error) from None  # the cause quotes the value
        values = data, b"%d" % es, _json(gtid), b"%d" % number, old, types, b"%d" % ts, b""
        return b"".join([each for pair in zip(self._parts_of[action], values, strict=True) for each in pair])

    def _images(self, action: Action, rows: Sequence[Row]) -> tuple[bytes, bytes]:
        """Encode `data` and `old`."""
        if action is not Action.UPDATE:
            return self._writer.array(rows), b"null"
        before, after = rows[::2], rows[1::2]
        return self._writer.array(after), self._writer.array(before, after)

    def _sql_type(self, row: Row) -> bytes:
        # `SqlType.of` of each cell, inlined because a call for each cell takes time
        key = tuple(
            [
                null if cell is None else widened if len(cell) >= digits and int(cell) >= limit else default
                for index, digits, default, null, limit, widened in self._varying
                for cell in (row[index],)
            ]
        )
        encoded = self._sql_types.get(key)
        if encoded is None:
            names = [column.name for column in self._table.columns]
            types = map(SqlType.of, self._types, row)
            encoded = self._sql_types[key] = _json(dict(zip(names, types, strict=True)))
        return encoded
