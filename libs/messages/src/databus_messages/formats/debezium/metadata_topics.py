"""Debezium's topics other than those of tables: schema changes, transactions, heartbeats."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from databus_binlog import Flavor
from databus_core.names import debezium_heartbeat_topic, debezium_transaction_topic
from databus_messages.formats.base import Record
from databus_messages.formats.debezium import schema_changes, transactions
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.options import DebeziumOptions
from databus_messages.formats.debezium.schemas import INT64, STRING, Schema, struct

_HEARTBEAT_KEY = struct("io.debezium.connector.common.ServerNameKey", {"serverName": STRING})
_HEARTBEAT = struct("io.debezium.connector.common.Heartbeat", {"ts_ms": INT64})


class MetadataTopic:
    """A topic with one schema for all keys and one for all values."""

    def __init__(self, codec: Codec, name: str, key: Schema, value: Schema) -> None:
        self.name = name
        self._codec, self._schemas = codec, {"key": key, "value": value}
        self._encoder = cache(self._new_encoder)

    def open(self) -> None:
        """Encode the schemas now instead of with the first record. Blocks if they have to be registered."""
        for part in self._schemas:
            self._encoder(part)

    def record(self, key: dict[str, Any], value: dict[str, Any]) -> Record:
        """Encode a record."""
        return Record(*self.encoded(key, value), topic=self.name)

    def encoded(self, key: dict[str, Any], value: dict[str, Any]) -> tuple[bytes, bytes]:
        """Encode a key and a value."""
        return self._encoder("key")(key), self._encoder("value")(value)

    def _new_encoder(self, part: str) -> Callable[[dict[str, Any]], bytes]:
        schema = self._schemas[part]
        (head, tail), encode = self._codec.wrapper(self.name, part, schema), self._codec.encoder(schema)
        return lambda data: b"".join((head, encode(data), tail))


class MetadataTopics:
    """All metadata topics, of which the options enable some."""

    def __init__(self, codec: Codec, flavor: Flavor, prefix: str, source: Schema, options: DebeziumOptions) -> None:
        self._options = options
        key, value = schema_changes.key_schema(flavor), schema_changes.value_schema(flavor, source)
        self.schema_changes = MetadataTopic(codec, prefix, key, value)
        self.transactions = MetadataTopic(
            codec, debezium_transaction_topic(prefix), transactions.KEY, transactions.VALUE
        )
        self.heartbeats = MetadataTopic(codec, debezium_heartbeat_topic(prefix), _HEARTBEAT_KEY, _HEARTBEAT)

    def enabled(self) -> Iterator[MetadataTopic]:
        """Yield the topics that the options enable."""
        if self._options.include_schema_changes:
            yield self.schema_changes
        if self._options.provide_transaction_metadata:
            yield self.transactions
        if self._options.heartbeat_interval_ms:
            yield self.heartbeats
