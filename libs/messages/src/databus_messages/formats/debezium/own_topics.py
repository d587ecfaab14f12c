"""Topics that a Debezium format has beside those of rows."""

from collections.abc import Callable
from functools import cache
from typing import Any

from databus_messages.formats.base import Record
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.schemas import Schema


class OwnTopic:
    """A topic of the format's own; its schemas are encoded with the first record."""

    def __init__(self, codec: Codec, name: str, key: Schema, value: Schema) -> None:
        self.name = name
        self._codec, self._schemas = codec, {"key": key, "value": value}
        self._part = cache(self._make_part)

    def open(self) -> None:
        """Encode the schemas now."""
        for part in self._schemas:
            self._part(part)

    def record(self, key: dict[str, Any], value: dict[str, Any]) -> Record:
        """Make a record."""
        return Record(self._part("key")(key), self._part("value")(value), topic=self.name)

    def _make_part(self, part: str) -> Callable[[dict[str, Any]], bytes]:
        schema = self._schemas[part]
        (head, tail), encode = self._codec.frame(self.name, part, schema), self._codec.data(schema)
        return lambda data: b"".join((head, encode(data), tail))
