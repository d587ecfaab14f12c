"""The `tdsql` format: messages of the subscription of TDSQL and TencentDB for MariaDB.

Each row, GTID, XID and statement is a message. What its documentation leaves open is chosen so:

* `event_index` counts the events of the transaction that its messages let us know of: the GTID, MySQL's BEGIN, the
  statement that made the rows where the server logs it, their table map where there is room for one before them, the
  rows, the XID. All rows of an event share its index. Events of tables that are not captured are not counted, and
  of a statement on several tables one table map only; in a compressed transaction each event is taken to have one.
* `db` and `table` of a GTID are empty, of an XID those of the last rows, of a statement its table's; the original gives
  whatever its last table map was.
* A transaction without an XID, of an engine without transactions, ends without a message.
* `begintime` is the commit time. There is no key.
* Values are SQL literals, see `sql_literals`. Rows of a dump are inserts without a GTID, their index is 0.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import msgspec

from databus.events import Action, Begin, Row, Table
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    MessageSource,
    Options,
    Record,
    SnapshotRows,
    TransactionEnd,
)
from databus_messages.formats.columns import misfit
from databus_messages.formats.sql_literals import Dialect, LiteralOf, literal_of

_encode = msgspec.json.Encoder().encode

#: events that write, update and delete rows: MariaDB's, and MySQL's
_ROWS = {
    "mariadb": {Action.INSERT: 23, Action.UPDATE: 24, Action.DELETE: 25},
    "mysql": {Action.INSERT: 30, Action.UPDATE: 31, Action.DELETE: 32},
}
_GTID = {"mariadb": 162, "mysql": 33}
_QUERY, _XID = 2, 16


class TdsqlOptions(Options):
    """What a route may set."""

    #: how values are written
    dialect: Dialect = "mysqlbinlog"


class Tdsql(Format[TdsqlOptions]):
    """Makes the messages of a subscription."""

    options_type = TdsqlOptions

    def __init__(self, source: MessageSource, options: TdsqlOptions) -> None:
        super().__init__(source, options)
        self._literals: dict[str, list[LiteralOf]] = {}
        #: of the transaction's last event that had messages: its number, first row and end, and its table
        self._index = 1
        self._event = (-1, -1)
        self._table: tuple[str, str] = ("", "")

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Make the message of the GTID."""
        self._index, self._event, self._table = 1, (-1, -1), ("", "")
        return self._gtid(begin)

    def change(self, change: Change) -> Iterable[Record]:
        """Make one message of each row."""
        table, flavor = change.table, self.source.flavor
        self._count(change)
        self._table = (table.schema, table.name)
        head = self._head(_ROWS[flavor][change.action], change.action, self._table, change.begin, self._index)
        rows = change.rows
        nothing: list[str] = []
        step = 2 if change.action is Action.UPDATE else 1
        try:
            before = [] if change.action is Action.INSERT else [self._row(table, row) for row in rows[::step]]
            after = [] if change.action is Action.DELETE else [self._row(table, row) for row in rows[step - 1 :: step]]
        except (ValueError, LookupError) as error:
            raise misfit(table, error) from None  # it could show the value
        pairs = zip_longest(before, after, fillvalue=nothing)
        return [_record(head, where=where, field=field) for where, field in pairs]

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Make the messages of a statement, which is a transaction of its own, and of its GTID."""
        sql, name = statement.sql, (statement.table.schema, statement.table.name)
        yield from self._gtid(statement.begin)
        yield _record(self._head(_QUERY, "query", name, statement.begin, 2), sql=sql)

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Make the message of the XID."""
        if end.xid is None:
            return []
        return [_record(self._head(_XID, "xid", self._table, begin, self._index + 1), xid=str(end.xid))]

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make an insert of each row, of a transaction without a GTID."""
        table = snapshot.table
        begin = Begin(0, "", snapshot.position.file, 0, 0, snapshot.time_us)
        kind = _ROWS[self.source.flavor][Action.INSERT]
        head = self._head(kind, Action.INSERT, (table.schema, table.name), begin, 0)
        try:
            for row in snapshot.rows:
                yield _record(head, where=[], field=self._row(table, row))
        except (ValueError, LookupError) as error:
            raise misfit(table, error) from None

    def _gtid(self, begin: Begin) -> list[Record]:
        if not begin.gtid:
            return []
        return [_record(self._head(_GTID[self.source.flavor], "gtid", ("", ""), begin, 1))]

    def _count(self, change: Change) -> None:
        """Move the index on to the event of a change; one that is told in parts is counted once."""
        event = (change.first, change.end)
        if event == self._event:
            return
        if self._event == (-1, -1) and self.source.flavor == "mysql":
            self._index += 1  # BEGIN
        if change.query is not None:
            self._index += 1
        if change.start != self._event[1]:
            self._index += 1  # the table map
        self._index += 1
        self._event = event

    def _head(self, kind: int, name: str, table: tuple[str, str], begin: Begin, index: int) -> bytes:
        head = {
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
        return _encode(head)[:-1]

    def _row(self, table: Table, row: Row) -> list[str]:
        literals = self._literals.get(table.fingerprint)
        if literals is None:
            literals = [literal_of(column, self.options.dialect) for column in table.columns]
            self._literals[table.fingerprint] = literals
        return ["NULL" if cell is None else literal(cell) for cell, literal in zip(row, literals, strict=True)]


def _record(head: bytes, **members: str | Sequence[str]) -> Record:
    return Record(None, b"%b,%b" % (head, _encode(members)[1:]) if members else head + b"}")
