"""The sequence of a record: its place in the order of all that a pipeline publishes, as a header (ADR 18).

It is the ordinal of the transaction and, in it, the ordinal of the record's first row among all rows that are captured.
It does not depend on the format, the routes, the partition or the host that is read. The records of one row change have
the same sequence. A record without rows (a statement, the end of a transaction, a heartbeat) has the sequence of the
next row. So all earlier rows have lower sequences, and no later row has.
"""

from collections.abc import Sequence

import msgspec

from databus_core.names import SEQUENCE_HEADER
from databus_wire.kafka_records import sequence_text


class Ordinals(msgspec.Struct, frozen=True, gc=False):
    """The sequences of the records of a message."""

    #: ordinal of the transaction in the pipeline
    transaction: int
    #: ordinals of the rows among the captured rows of the transaction; of content without rows, that of the next row
    rows: Sequence[int]

    def row(self, index: int, count: int, row: int | None = None) -> int:
        """Return the ordinal of a record's first row; the record is number `index` of the message's `count` records.

        `row` is the index of the row that the record is about; None if each row has as many records as the others, or
        each record as many rows.
        """
        return self.rows[index * len(self.rows) // count if row is None else row]

    def header(self, index: int, count: int, row: int | None = None) -> tuple[str, bytes]:
        """Return the header of a record; see `row`."""
        return SEQUENCE_HEADER, sequence_text(self.transaction, self.row(index, count, row))
