"""The parts of Maxwell's messages about one table. What all messages have in common is encoded once."""

from collections.abc import Iterable

from databus_core.events import Table
from databus_messages.formats.maxwell_keys import MaxwellKeyEncoder
from databus_messages.formats.maxwell_options import MaxwellOptions
from databus_messages.formats.maxwell_values import encode, row_writer


class MaxwellTableEncoder:
    """Encodes the parts of a message: `head`, then the caller's members, `data`, and the row, which `rows` encodes."""

    def __init__(self, table: Table, options: MaxwellOptions) -> None:
        self.rows = row_writer(table, null_zerodates=options.output_null_zerodates)
        self.keys = MaxwellKeyEncoder(table, options.kafka_key_format)
        #: indexes of the primary key's columns
        self.key_columns = table.primary_key
        self._table = b'{"database":%b,"table":%b' % (encode(table.schema), encode(table.name))
        names = encode([table.columns[index].name for index in table.primary_key])
        names = b',"primary_key_columns":%b' % names if options.output_primary_key_columns else b""
        self._with_primary_key = options.output_primary_keys
        self._data = names + b',"data":'

    def head(self, kind: str, time_us: int, query: bytes = b"", xid: bytes = b"") -> bytes:
        """Encode the start of a message; `query` and `xid` are encoded members, each with a comma before it."""
        return b'%b%b,"type":"%b","ts":%d%b' % (self._table, query, kind.encode(), time_us // 1_000_000, xid)

    def data(self, key: Iterable[bytes]) -> bytes:
        """Encode what precedes the row: the members about the primary key, if enabled, and the name `data`."""
        return b',"primary_key":[%b]%b' % (b",".join(key), self._data) if self._with_primary_key else self._data
