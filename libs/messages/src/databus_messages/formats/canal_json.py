"""The `canal-json` format: canal's flat message, one for the rows of an event that go to one partition.

All members stand in every message, in alphabetical order; records have no key. Where canal leaves a choice:

* `id` is the ordinal of the source transaction in its pipeline, 0 for the rows of a dump.
* `gtid` is the transaction's own GTID, for rows of a dump the set that it holds; empty where the source has none.
* `es` is the commit's time in ms, as exact as the source gives it; `ts` is the clock's, and all that differs when a
  message is made again.
* `sqlType` is that of the last row's values: unsigned ones above the signed range have another.
* `old` has the columns that the update changed in its own row (canal adds those of the rows before).
* A dump's rows are INSERTs. Statements that made rows (`binlog_rows_query_log_events`) have no message of their own.

Values: see `databus_messages.formats.canal`; types of statements: `databus_messages.formats.canal_ddl`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from sys import maxsize

import msgspec

from databus.events import Action, Row, Table
from databus_messages.formats.base import Change, DdlStatement, Format, MessageSource, Record, SnapshotRows
from databus_messages.formats.canal import EVENT_TYPES, CanalOptions, SqlType, converter, pk_names, sql_type
from databus_messages.formats.canal_ddl import flat_message
from databus_messages.formats.columns import misfit
from databus_messages.formats.row_texts import row_writer

_json = msgspec.json.Encoder().encode


class CanalJson(Format[CanalOptions]):
    """Makes flat messages; `clock` gives seconds since the epoch."""

    options_type = CanalOptions

    def __init__(self, source: MessageSource, options: CanalOptions, clock: Callable[[], float] = time.time) -> None:
        super().__init__(source, options)
        self._clock = clock
        self._tables: dict[str, _Rows] = {}

    def change(self, change: Change) -> Iterable[Record]:
        """Make one message of the rows."""
        begin, rows = change.begin, self._rows(change.table)
        about = begin.time_us // 1000, begin.gtid, begin.transaction, self._now()
        return (Record(None, rows.message(change.action, change.rows, *about)),)

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Make the message of a statement."""
        begin = statement.begin
        return (Record(None, flat_message(statement, ts=self._now(), number=begin.transaction, gtid=begin.gtid)),)

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make one message of the rows, as of an INSERT."""
        if not snapshot.rows:
            return ()
        about = snapshot.time_us // 1000, snapshot.position.gtid_set, 0, self._now()
        return (Record(None, self._rows(snapshot.table).message(Action.INSERT, snapshot.rows, *about)),)

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _rows(self, table: Table) -> "_Rows":
        rows = self._tables.get(table.fingerprint)
        if rows is None:
            rows = self._tables[table.fingerprint] = _Rows(table, self.options.time_zone)
        return rows


class _Rows:
    """The rows of one table; what their messages have in common is encoded once."""

    def __init__(self, table: Table, time_zone: str) -> None:
        self._table = table
        self._writer = row_writer(table.columns, [converter(column, time_zone) for column in table.columns])
        self._types = [sql_type(column) for column in table.columns]
        #: places of those that vary, how many digits take another type at the earliest, and what `SqlType` tells
        self._varying = [
            (place, len(str(kind.limit)) if kind.limit else maxsize, *kind)
            for place, kind in enumerate(self._types)
            if kind.varies
        ]
        #: `sqlType`, by the types of those that vary
        self._sql_types: dict[tuple[int, ...], bytes] = {}
        self._messages = {action: self._template(kind) for action, kind in EVENT_TYPES.items()}

    def _template(self, kind: str) -> bytes:
        """Make a message with gaps for what is not the table's."""
        common = (
            self._table.schema,
            {column.name: column.raw_type for column in self._table.columns},
            pk_names(self._table),
            self._table.name,
            kind,
        )
        return (
            b'{"data":%%b,"database":%b,"es":%%d,"gtid":%%b,"id":%%d,"isDdl":false,"mysqlType":%b,"old":%%b,'
            b'"pkNames":%b,"sql":"","sqlType":%%b,"table":%b,"ts":%%d,"type":%b}'
        ) % tuple(_json(value).replace(b"%", b"%%") for value in common)

    def message(self, action: Action, rows: Sequence[Row], es: int, gtid: str, number: int, ts: int) -> bytes:
        """Make the message of some rows, at least one. Raises PoisonError for values that do not fit their columns."""
        try:
            after, old = self._images(action, rows)
            types = self._sql_type(rows[-1])
        except ValueError as error:
            raise misfit(self._table, error) from None  # it could show the value
        return self._messages[action] % (after, es, _json(gtid), number, old, types, ts)

    def _images(self, action: Action, rows: Sequence[Row]) -> tuple[bytes, bytes]:
        """Give `data` and `old`."""
        if action is not Action.UPDATE:
            return self._writer.array(rows), b"null"
        before, after = rows[::2], rows[1::2]
        return self._writer.array(after), self._writer.array(before, after)

    def _sql_type(self, row: Row) -> bytes:
        key = tuple(
            [
                null if (cell := row[place]) is None else above if len(cell) >= digits and int(cell) >= limit else usual
                for place, digits, usual, null, limit, above in self._varying  # SqlType.of, without the call
            ]
        )
        known = self._sql_types.get(key)
        if known is None:
            names = [column.name for column in self._table.columns]
            types = map(SqlType.of, self._types, row)
            known = self._sql_types[key] = _json(dict(zip(names, types, strict=True)))
        return known
