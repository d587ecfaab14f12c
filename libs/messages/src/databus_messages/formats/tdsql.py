"""The `tdsql` format: messages of the data subscription of TDSQL and TencentDB for MariaDB.

Each row, GTID, XID and DDL statement is a message without a key. Choices that TDSQL's documentation leaves open:

* `event_index` numbers those events of a transaction that can be derived from what the rule publishes: the GTID,
  MySQL's BEGIN, the logged statement, a table map if there is a gap before the rows event, the rows event, the XID. All
  rows of an event have the same index. Events of other tables are not counted. For a statement on several tables only
  one table map is counted; in a compressed transaction one table map is counted for each rows event.
* `db` and `table` are empty for a GTID. An XID has those of the transaction's last rows, a DDL statement those of its
  table; for DDL on a database, `table` is empty. (TDSQL itself repeats those of the last table map.)
* A transaction without an XID (e.g. of a non-transactional engine) has no message at its end.
* `begintime` is the commit time; for rows of a dump, when the dump was requested; for rows of a backfill, when they
  were read.
* Values are SQL literals, see `databus_messages.formats.sql_literals`. Rows of a dump or a backfill are inserts without
  a GTID and with index 0.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import msgspec

from databus_core.events import Action, Begin, Row
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    KeyValueRecords,
    MessageSource,
    Options,
    Record,
    SnapshotRows,
    TransactionEnd,
)
from databus_messages.formats.columns import invalid_value
from databus_messages.formats.sql_literals import Dialect, LiteralEncoder, literal_encoder
from databus_messages.formats.table_cache import TableCache

_json = msgspec.json.Encoder().encode

#: binlog event types of the rows events, per server
_ROWS = {
    "mariadb": {Action.INSERT: 23, Action.UPDATE: 24, Action.DELETE: 25},
    "mysql": {Action.INSERT: 30, Action.UPDATE: 31, Action.DELETE: 32},
}
_GTID = {"mariadb": 162, "mysql": 33}
_QUERY, _XID = 2, 16
_NO_EVENT = (-1, -1)
_NO_TABLE = ("", "")


class TdsqlOptions(Options):
    """Options of the format."""

    #: dialect of the SQL literals
    dialect: Dialect = "mysqlbinlog"


class Tdsql(Format[TdsqlOptions]):
    """Encodes the messages of a TDSQL data subscription."""

    options_type = TdsqlOptions
    has_database_statements = True

    def __init__(self, source: MessageSource, options: TdsqlOptions) -> None:
        super().__init__(source, options)
        self._encoders: TableCache[list[LiteralEncoder]] = TableCache(
            lambda table: [literal_encoder(column, options.dialect) for column in table.columns]
        )
        #: `event_index` of the transaction's latest event
        self._index = 1
        #: `first` and `end` of the transaction's latest rows event, which identify it
        self._event = _NO_EVENT
        #: schema and name of the table of the transaction's latest rows event
        self._table = _NO_TABLE

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Encode the GTID."""
        self._index, self._event, self._table = 1, _NO_EVENT, _NO_TABLE
        return self._gtid(begin)

    def change(self, change: Change) -> Iterable[Record]:
        """Encode each row change."""
        table, rows, encoders = change.table, change.rows, self._encoders[change.table]
        self._count(change)
        self._table = (table.schema, table.name)
        kind = _ROWS[self.source.flavor][change.action]
        head = self._head(kind, change.action, self._table, change.begin, self._index)
        step = 2 if change.action is Action.UPDATE else 1
        before_rows = [] if change.action is Action.INSERT else rows[::step]
        after_rows = [] if change.action is Action.DELETE else rows[step - 1 :: step]
        try:
            before = [_literals(encoders, row) for row in before_rows]
            after = [_literals(encoders, row) for row in after_rows]
        except (ValueError, LookupError) as error:
            raise invalid_value(table, error) from None  # the cause quotes the value
        no_image: list[str] = []
        pairs = zip_longest(before, after, fillvalue=no_image)
        return _without_keys([_value(head, where=where, field=field) for where, field in pairs])

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Encode the GTID, then the statement: a DDL statement is a transaction of its own."""
        sql, table = statement.sql, (statement.table.schema, statement.table.name)
        yield from self._gtid(statement.begin)
        yield _record(self._head(_QUERY, "query", table, statement.begin, 2), sql=sql)

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Encode the XID."""
        if end.xid is None:
            return []
        return [_record(self._head(_XID, "xid", self._table, begin, self._index + 1), xid=str(end.xid))]

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Encode each row as an insert in a transaction without a GTID."""
        table, encoders = snapshot.table, self._encoders[snapshot.table]
        begin = Begin(0, "", snapshot.position.file, 0, 0, snapshot.time_us)
        kind = _ROWS[self.source.flavor][Action.INSERT]
        head = self._head(kind, Action.INSERT, (table.schema, table.name), begin, 0)
        try:
            return _without_keys([_value(head, where=[], field=_literals(encoders, row)) for row in snapshot.rows])
        except (ValueError, LookupError) as error:
            raise invalid_value(table, error) from None

    def _gtid(self, begin: Begin) -> list[Record]:
        if not begin.gtid:
            return []
        return [_record(self._head(_GTID[self.source.flavor], "gtid", _NO_TABLE, begin, 1))]

    def _count(self, change: Change) -> None:
        """Advance the index to the change's event. An event that is split by partition is counted once."""
        event = (change.first, change.end)
        if event == self._event:
            return
        if self._event == _NO_EVENT and self.source.flavor == "mysql":
            self._index += 1  # BEGIN
        if change.query is not None:
            self._index += 1  # the logged statement
        if change.start != self._event[1]:
            self._index += 1  # the table map
        self._index += 1  # the rows event
        self._event = event

    def _head(self, kind: int, name: str, table: tuple[str, str], begin: Begin, index: int) -> bytes:
        """Encode the members that all messages have: an object without its closing brace."""
        members = {
            "logtype": "mysqlbinlog",
            "eventtype": kind,
            "eventtypestr": name,
            "db": table[0],
            "table": table[1],
            "localip": self.source.host,
            "localport": self.source.port,
            "begintime": begin.time_us // 1_000_000,
            "gtid": begin.gtid,
            "event_index": str(index),
        }
        return _json(members)[:-1]


def _literals(encoders: Sequence[LiteralEncoder], row: Row) -> list[str]:
    return ["NULL" if cell is None else encode(cell) for cell, encode in zip(row, encoders, strict=True)]


def _without_keys(values: list[bytes]) -> KeyValueRecords:
    return KeyValueRecords([None] * len(values), values)


def _record(head: bytes, **members: str) -> Record:
    return Record(None, _value(head, **members))


def _value(head: bytes, **members: str | Sequence[str]) -> bytes:
    return b"%b,%b" % (head, _json(members)[1:]) if members else head + b"}"
