"""The `maxwell-json` format: Maxwell's messages, one for each row.

Options have Maxwell's own names and defaults. `gtid` is the transaction's, not the set of all before it; `thread_id`
and `query` stand where the binlog tells them. What Maxwell draws at random, the UUIDs in keys, is made of the place in
the log: a message that is sent again has the same key. `ts` is the time of the commit. Rows of a dump stand between
`bootstrap-start` and `bootstrap-complete`. DDL of databases is not told.
"""

from collections.abc import Iterable
from itertools import repeat

from databus.events import Action, Begin, Table
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    KeyValueRecords,
    MessageSource,
    Options,
    Record,
    SnapshotRows,
)
from databus_messages.formats.columns import misfit
from databus_messages.formats.maxwell_ddl import description
from databus_messages.formats.maxwell_keys import KeyFormat, KeyWriter, uuid
from databus_messages.formats.maxwell_values import encode, row_writer
from databus_messages.formats.queries import Queries


class MaxwellOptions(Options):
    """Maxwell's own settings of its output."""

    output_commit_info: bool = True
    output_xoffset: bool = False
    output_row_query: bool = False
    output_binlog_position: bool = False
    output_gtid_position: bool = False
    output_server_id: bool = False
    output_thread_id: bool = False
    output_primary_keys: bool = False
    output_primary_key_columns: bool = False
    output_nulls: bool = True
    output_null_zerodates: bool = False
    output_ddl: bool = False
    #: by default that of the table's rows
    ddl_kafka_topic: str | None = None
    kafka_key_format: KeyFormat = "hash"


class _Messages:
    """Writes the messages about a table's rows; what they have in common is written once."""

    def __init__(self, table: Table, options: MaxwellOptions) -> None:
        self.rows = row_writer(table, null_zerodates=options.output_null_zerodates)
        self.keys = KeyWriter(table, options.kafka_key_format)
        self.key_places = table.primary_key
        self._table = b'{"database":%b,"table":%b' % (encode(table.schema), encode(table.name))
        key_columns = encode([table.columns[place].name for place in table.primary_key])
        key_columns = b',"primary_key_columns":%b' % key_columns if options.output_primary_key_columns else b""
        self._tells_key = options.output_primary_keys
        self._data = key_columns + b',"data":'

    def head(self, kind: str, time_us: int, query: bytes = b"", xid: bytes = b"") -> bytes:
        """Write how messages begin, up to what they say of the commit."""
        return b'%b%b,"type":"%b","ts":%d%b' % (self._table, query, kind.encode(), time_us // 1_000_000, xid)

    def data(self, key: Iterable[bytes]) -> bytes:
        """Write what stands before a message's data, from the primary key on."""
        return b',"primary_key":[%b]%b' % (b",".join(key), self._data) if self._tells_key else self._data


class MaxwellJson(Format[MaxwellOptions]):
    """Makes Maxwell's messages. They tell the transaction's end, so that it has to be known."""

    options_type = MaxwellOptions
    needs_transaction_end = True

    def __init__(self, source: MessageSource, options: MaxwellOptions) -> None:
        super().__init__(source, options)
        self._messages: dict[str, _Messages] = {}
        self._tells_place = (
            options.output_binlog_position
            or options.output_gtid_position
            or options.output_server_id
            or options.output_thread_id
        )
        self._queries = Queries()
        #: rows of the table that the dump has had so far
        self._dumped = 0

    def topics(self) -> Iterable[str]:
        """Name the topic for DDL, if it has its own."""
        topic = self.options.ddl_kafka_topic
        return [topic] if self.options.output_ddl and topic else []

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Forget the last transaction's statement."""
        self._queries.forget()
        return ()

    def change(self, change: Change) -> Iterable[Record]:
        """Make one message of each row."""
        messages = self._of(change.table)
        try:
            return self._rows(messages, change)
        except (ValueError, LookupError) as error:
            raise misfit(change.table, error) from None  # it could show the value

    def _rows(self, messages: _Messages, change: Change) -> KeyValueRecords:
        options, begin = self.options, change.begin
        end = change.transaction_end if options.output_commit_info else None
        told = self._queries.of(change) if options.output_row_query else None
        query = b"" if told is None else b',"query":%b' % encode(told)
        xid = b',"xid":%d' % end.xid if end and end.xid is not None else b""
        head, place = messages.head(change.action, begin.time_us, query, xid), self._place(change)
        last = end.rows - 1 if end else -1
        offsets, nulls = options.output_xoffset and options.output_commit_info, options.output_nulls
        writer, keys, source = messages.rows, messages.keys, self.source.name
        updates = change.action is Action.UPDATE
        rows = change.rows[1::2] if updates else change.rows
        befores = change.rows[::2] if updates else repeat(None)
        written, values = [], []
        for ordinal, row, before in zip(change.ordinals, rows, befores, strict=False):
            commit = b',"commit":true' if ordinal == last else b',"xoffset":%d' % ordinal if offsets else b""
            key = writer.values(messages.key_places, row)
            old = writer.changed(before, row, nulls) if before else None
            tail = b',"old":%b}' % old if old else b"}"
            values.append(writer.row(row, nulls, head + commit + place + messages.data(key), tail))
            written.append(keys.of_row(key, source, begin.transaction, ordinal))
        return KeyValueRecords(written, values)

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Make the message of a CREATE, ALTER or DROP."""
        told = description(statement) if self.options.output_ddl else None
        if told is None:
            return ()
        begin = statement.begin
        if self.options.output_binlog_position:
            told["position"] = f"{begin.file}:{statement.start}"
        if self.options.output_gtid_position and begin.gtid:
            told["gtid"] = begin.gtid
        table = statement.table
        key = uuid(self.source.name, begin.transaction, statement.start, table.schema, table.name)
        return [Record(key, encode(told), topic=self.options.ddl_kafka_topic)]

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make Maxwell's bootstrap messages."""
        messages = self._of(snapshot.table)
        keys, identity = messages.keys, (self.source.name, snapshot.time_us)
        if snapshot.first_of_table:
            self._dumped = 0
            nothing = [b"null"] * len(snapshot.table.primary_key)
            head = messages.head("bootstrap-start", snapshot.time_us) + messages.data(nothing)
            yield Record(keys.of_row(nothing, *identity, "start"), head + b"{}}")
        head = messages.head("bootstrap-insert", snapshot.time_us)
        for place, row in enumerate(snapshot.rows, self._dumped):
            try:
                key = messages.rows.values(messages.key_places, row)
                value = messages.rows.row(row, self.options.output_nulls, head + messages.data(key), b"}")
            except (ValueError, LookupError) as error:
                raise misfit(snapshot.table, error) from None
            yield Record(keys.of_row(key, *identity, place), value)
        self._dumped += len(snapshot.rows)
        if snapshot.last_of_table:
            head = messages.head("bootstrap-complete", snapshot.time_us) + messages.data(())
            yield Record(keys.of_none(*identity, "complete"), head + b"{}}")

    def _of(self, table: Table) -> _Messages:
        found = self._messages.get(table.fingerprint)
        if found is None:
            found = self._messages[table.fingerprint] = _Messages(table, self.options)
        return found

    def _place(self, change: Change) -> bytes:
        if not self._tells_place:
            return b""
        options, begin = self.options, change.begin
        told: dict[str, object] = {}
        if options.output_binlog_position:
            told["position"] = f"{begin.file}:{change.start}"
        if options.output_gtid_position and begin.gtid:
            told["gtid"] = begin.gtid
        if options.output_server_id:
            told["server_id"] = begin.server_id
        if options.output_thread_id and begin.thread_id:
            told["thread_id"] = begin.thread_id
        return b",%b" % encode(told)[1:-1] if told else b""
