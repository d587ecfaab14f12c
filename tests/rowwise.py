"""A format of a third party: a record for each row, with what stands around transactions in the way of several."""

from collections.abc import Iterable

import msgspec

from databus.events import Begin
from databus_messages.formats.base import Change, Format, Options, Record, SnapshotRows, TransactionEnd


class Rowwise(Format[Options]):
    """Tells its rows' first cells, and where they are in their transaction; the last one that it is the last."""

    needs_transaction_end = True

    def topics(self) -> Iterable[str]:
        return [f"{self.source.name}.transactions"]

    def begin(self, begin: Begin) -> Iterable[Record]:
        return [Record(None, b'"begin"'), Record(b"t", b"%d begins" % begin.transaction, topic=self._own)]

    def change(self, change: Change) -> Iterable[Record]:
        end = change.transaction_end
        assert end
        images = 2 if len(change.rows) > len(change.ordinals) else 1
        for ordinal, row in zip(change.ordinals, change.rows[images - 1 :: images], strict=True):
            told = [
                change.table.name,
                change.action,
                (row[0] or b"").decode(),
                ordinal,
                ordinal + 1 == end.rows,
                change.query,
            ]
            yield Record(None, msgspec.json.encode(told), [("xid", b"%d" % (end.xid or 0))])

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        return [
            Record(None, b'"end"'),
            Record(b"t", b"%d ends with %d" % (begin.transaction, end.rows), topic=self._own),
        ]

    def heartbeat(self, time_us: int) -> Iterable[Record]:
        return [Record(b"h", b"%d" % time_us, topic=self._own)]

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        return ()

    @property
    def _own(self) -> str:
        return f"{self.source.name}.transactions"
