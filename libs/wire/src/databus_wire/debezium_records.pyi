"""Writes the records of the format `debezium-json`."""

from typing import TypeAlias, final

from databus_wire.debezium_transactions import TransactionWriter
from databus_wire.json_rows import RowWriter
from databus_wire.rows_writer import RowsWriter
from databus_wire.templates import Template

#: the value of an operation: before the first image, between two images, then up to the row number, up to the
#: transaction block, and after it
_Envelope: TypeAlias = tuple[bytes, bytes | None, Template, Template, Template]

@final
class DebeziumWriter(RowsWriter):
    """Writes one record for each changed row of a table. Updates that change the key are left to the Python path.

    images: writes the row images.
    key: indexes of the key's columns, and what is before and after them; None: rows have no key.
    envelopes: of an insert, an update and a delete; None: the operation has no record.
    tombstones: whether a delete is followed by a tombstone, if rows have a key.
    transactions: writes transaction metadata; None: there is none, and the templates have `null` instead of blocks.
    table: the table's name in transaction metadata.
    """

    def __init__(
        self,
        images: RowWriter,
        key: tuple[tuple[int, ...], bytes, bytes] | None,
        envelopes: tuple[_Envelope | None, _Envelope | None, _Envelope | None],
        tombstones: bool,
        transactions: TransactionWriter | None,
        table: str,
    ) -> None: ...
