"""The parts of Maxwell's messages about one table. What all messages have in common is encoded once."""

from collections.abc import Iterable

from databus_core.events import ROW_ACTIONS, Action, Table
from databus_messages.formats.maxwell_keys import MaxwellKeyEncoder
from databus_messages.formats.maxwell_options import MaxwellOptions
from databus_messages.formats.maxwell_values import encode, row_writer
from databus_wire.maxwell_records import MaxwellWriter
from databus_wire.templates import Slot, Template


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

    def rows_writer(self, options: MaxwellOptions, pipeline: str) -> MaxwellWriter:
        """Return a compiled writer of the messages of row changes, which have no statement."""
        insert, update, delete = (self._head_template(action, options) for action in ROW_ACTIONS)
        return MaxwellWriter(
            self.rows,
            (insert, update, delete),
            _origin(options),
            self._data,
            self.key_columns,
            self.keys.parts,
            None if any(self.keys.parts) else lambda *row: self.keys.without_row(pipeline, *row),
            marks_commit=options.output_commit_info,
            numbers_rows=options.output_commit_info and options.output_xoffset,
            nulls=options.output_nulls,
            repeats_key=self._with_primary_key,
        )

    def _head_template(self, action: Action, options: MaxwellOptions) -> Template:
        """Return the template of `head`."""
        xid = [Slot.XID_MEMBER] if options.output_commit_info else []
        return Template([b'%b,"type":"%b","ts":' % (self._table, action.encode()), Slot.TIME_S, *xid])

    def data(self, key: Iterable[bytes]) -> bytes:
        """Encode what precedes the row: the members about the primary key, if enabled, and the name `data`."""
        return b',"primary_key":[%b]%b' % (b",".join(key), self._data) if self._with_primary_key else self._data


def _origin(options: MaxwellOptions) -> Template:
    """Return the template of the members about a change's origin."""
    parts: list[bytes | Slot] = []
    if options.output_binlog_position:
        parts += b',"position":', Slot.POSITION
    if options.output_gtid_position:
        parts += [Slot.GTID_MEMBER]
    if options.output_server_id:
        parts += b',"server_id":', Slot.SERVER_ID
    if options.output_thread_id:
        parts += [Slot.THREAD_MEMBER]
    return Template(parts)
