"""A third party's format, with a record for each row, and records that begin and end a transaction.

The latter go to the route's topic and to a topic of the format's own.
"""

from collections.abc import Iterable

import msgspec

from databus_core.events import Begin
from databus_messages.formats.base import Change, Format, Options, Record, SnapshotRows, TransactionEnd


class Rowwise(Format[Options]):
    """Writes for each row: table, action, first cell, ordinal, whether it is the transaction's last row, statement."""

    needs_transaction_end = True

    def topics(self) -> Iterable[str]:
        return [self._own_topic]

    def begin(self, begin: Begin) -> Iterable[Record]:
        return [Record(None, b'"begin"'), Record(b"t", b"%d begins" % begin.transaction, topic=self._own_topic)]

    def change(self, change: Change) -> Iterable[Record]:
        end = change.transaction_end
        assert end
        images = 2 if len(change.rows) > len(change.ordinals) else 1
        for ordinal, row in zip(change.ordinals, change.rows[images - 1 :: images], strict=True):
            message = [
                change.table.name,
                change.action,
                (row[0] or b"").decode(),
                ordinal,
                ordinal + 1 == end.rows,
                change.query,
            ]
            yield Record(None, msgspec.json.encode(message), [("xid", b"%d" % (end.xid or 0))])

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        return [
            Record(None, b'"end"'),
            Record(b"t", b"%d ends with %d" % (begin.transaction, end.rows), topic=self._own_topic),
        ]

    def heartbeat(self, time_us: int) -> Iterable[Record]:
        return [Record(b"h", b"%d" % time_us, topic=self._own_topic)]

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        return ()

    @property
    def _own_topic(self) -> str:
        return f"{self.source.name}.transactions"
