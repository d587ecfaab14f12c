"""`debezium-json`: messages as Connect's JsonConverter writes them, with or without schemas."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from databus_core.events import Row, Table
from databus_messages.formats.base import MessageSource
from databus_messages.formats.debezium.codec import Codec, ImageTemplate, RowEncoder
from databus_messages.formats.debezium.format import OPERATIONS, Debezium
from databus_messages.formats.debezium.metadata_topics import MetadataTopic
from databus_messages.formats.debezium.options import JsonOptions
from databus_messages.formats.debezium.schemas import Schema
from databus_messages.formats.debezium.transactions import begin_message, end_message, transaction_id
from databus_messages.formats.debezium.types import ColumnType
from databus_messages.routing.partitions import Partition
from databus_wire.debezium_records import DebeziumWriter
from databus_wire.debezium_transactions import TransactionWriter
from databus_wire.json_rows import (
    BASE64,
    DAYS,
    DECIMAL,
    JSON,
    MICROSECONDS,
    MILLISECONDS,
    RAW,
    TEXT,
    TIME,
    ZONED,
    RowWriter,
)
from databus_wire.rows_writer import RowsWriter

_json = msgspec.json.Encoder().encode

_CellConverter: TypeAlias = "int | Callable[[bytes], bytes] | tuple[int, Callable[[bytes], bytes]]"
#: name of a schema → the kind of column (see `RowWriter`) whose fast path converts the schema's values
_FAST_PATHS = {
    "org.apache.kafka.connect.data.Decimal": DECIMAL,
    "org.apache.kafka.connect.data.Date": DAYS,
    "org.apache.kafka.connect.data.Timestamp": MILLISECONDS,
    "io.debezium.time.Date": DAYS,
    "io.debezium.time.Timestamp": MILLISECONDS,
    "io.debezium.time.MicroTimestamp": MICROSECONDS,
    "io.debezium.time.MicroTime": TIME,
    "io.debezium.time.ZonedTimestamp": ZONED,
    "io.debezium.data.Json": JSON,
}


class DebeziumJson(Debezium[JsonOptions]):
    """Encodes keys and values as JSON."""

    options_type = JsonOptions
    accepts_packed_rows = True

    def __init__(self, source: MessageSource, options: JsonOptions) -> None:
        super().__init__(source, options, JsonCodec(options.schemas_enable))
        self._transactions: TransactionWriter | None = None
        if options.provide_transaction_metadata:
            topic, block = self._metadata.transactions, self._envelope.block_separators
            frames = TransactionFrames(topic)
            partition = Partition(topic.name, 0)
            self._transactions = TransactionWriter(partition, block, frames.begin, frames.end)

    def rows_writer(self, table: Table) -> RowsWriter | None:
        """Return a compiled writer; None with `include_query`, because values then contain statements."""
        encoder = self._tables[table]
        if self.options.include_query or not isinstance(encoder.images, JsonRows):
            return None
        skipped, source = self.options.skipped_operations, self._source.template(table)
        transactions, template = self._transactions, self._envelope.template
        insert, update, delete = (
            None
            if operation in skipped
            else template(operation, encoder.value_wrapper, source, has_blocks=transactions is not None)
            for operation in OPERATIONS.values()
        )
        values, tombstones = (insert, update, delete), self.options.tombstones_on_delete
        images, key = encoder.images.writer, encoder.key_parts
        return DebeziumWriter(images, key, values, tombstones, transactions, table.full_name)


class TransactionFrames:
    """Encodes the messages of the transactions that compiled code publishes."""

    def __init__(self, topic: MetadataTopic) -> None:
        self._topic = topic
        #: of the latest transaction
        self._id, self._time_us = "", 0

    def begin(self, gtid: str, file: str, start: int, time_us: int) -> tuple[bytes, bytes, bytes]:
        """Return the transaction's id in JSON, and key and value of its BEGIN message."""
        self._id, self._time_us = transaction_id(gtid, file, start), time_us
        return _json(self._id), *self._topic.encoded({"id": self._id}, begin_message(self._id, time_us))

    def end(self, rows: Mapping[str, int]) -> tuple[bytes, bytes]:
        """Return key and value of its END message, from the numbers of rows by table."""
        return self._topic.encoded({"id": self._id}, end_message(self._id, self._time_us, rows))


class JsonCodec(Codec):
    """Encodes Kafka Connect's data as JSON; bytes become base64."""

    null = b"null"
    present = b""
    integer = staticmethod(b"%d".__mod__)

    def __init__(self, schemas_enable: bool) -> None:
        self._schemas_enable = schemas_enable

    def wrapper(self, topic: str, part: str, schema: Schema) -> tuple[bytes, bytes]:
        """Wrap data in an object with its schema, if schemas are enabled."""
        if not self._schemas_enable:
            return b"", b""
        return b'{"schema":%b,"payload":' % _json(schema.json()), b"}"

    def separators(self, schema: Schema) -> Sequence[bytes]:
        """Return the punctuation and names of an object's members."""
        names = [_json(name) + b":" for name, _ in schema.fields]
        return [b"{" + names[0], *(b"," + name for name in names[1:]), b"}"]

    def row_encoder(self, schema: Schema, columns: Sequence[ColumnType]) -> RowEncoder:
        """Return an encoder that uses the compiled writer."""
        return JsonRows(RowWriter([name for name, _ in schema.fields], map(_cell_converter, columns)))

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return an encoder of any value: JSON needs no schema."""
        return _json


class JsonRows(RowEncoder):
    """Encodes rows as JSON objects."""

    def __init__(self, writer: RowWriter) -> None:
        self.writer = writer

    def columns(self, rows: Sequence[Row], indexes: tuple[int, ...], head: bytes, tail: bytes) -> list[bytes]:
        """Encode some columns of each row."""
        return self.writer.some_columns(rows, indexes, head, tail)

    def images(
        self, rows: Sequence[Row], numbers: Sequence[int], template: ImageTemplate, tails: bytes | Sequence[bytes]
    ) -> list[bytes]:
        """Encode rows in the template."""
        return self.writer.numbered(rows, numbers, *template, tails)


def _cell_converter(column: ColumnType) -> _CellConverter:
    """Return how `RowWriter` converts a value: by a kind, by a function that returns JSON, or by both."""
    convert = column.convert
    if convert is int:
        return RAW
    if convert is float:
        return RAW, _float
    if convert is bytes:
        return BASE64
    if convert == bytes.decode:
        return TEXT

    def encode(text: bytes) -> bytes:
        return _json(convert(text))

    fast_path = _FAST_PATHS.get(column.schema.name or "")
    if fast_path is not None:
        return fast_path, encode
    return lru_cache(4096)(encode) if column.cacheable else encode


def _float(text: bytes) -> bytes:
    """Write a whole number with a decimal point, so that no consumer reads it as an integer."""
    return text if b"." in text or b"e" in text else text + b".0"
