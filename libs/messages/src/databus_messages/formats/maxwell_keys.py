"""Keys of Maxwell's Kafka records."""

from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

from databus_core.events import Table
from databus_messages.formats.maxwell_options import KeyFormat
from databus_messages.formats.maxwell_values import encode


class MaxwellKeyEncoder:
    """Encodes keys with a row's primary key. Without one, a key has a UUID or, in the key format `array`, no values."""

    def __init__(self, table: Table, key_format: KeyFormat) -> None:
        names = [table.columns[index].name.lower() for index in table.primary_key]
        schema, name = encode(table.schema), encode(table.name)
        if key_format == "array":
            head, start, between, end = b"[%b,%b,[" % (schema, name), b"{", b"},{", b"}]]"
            members = [encode(name) + b":" for name in names]
            self._without_row = head + b"]]"
        else:
            head, start, between, end = b'{"database":%b,"table":%b,' % (schema, name), b"", b",", b"}"
            members = [encode(f"pk.{name}") + b":" for name in names]
            self._without_row = b""
        self._head = head
        #: what is before, between and after the values of the primary key; without one, the key, or empty if it varies
        self.parts: tuple[bytes, ...] = (self._without_row,)
        if members:
            self.parts = (head + start + members[0], *(between + member for member in members[1:]), end)
        self._template = b"%b".join(map(_literal, self.parts))

    def of_row(self, values: Sequence[bytes], *identity: object) -> bytes:
        """Encode the key of a row. `values` are those of its primary key, as JSON; if empty, see `without_row`."""
        return self._template % tuple(values) if values else self.without_row(*identity)

    def without_row(self, *identity: object) -> bytes:
        """Encode the key of a message without a primary key; `identity` distinguishes it from others of the table."""
        return self._without_row or b'%b"_uuid":"%b"}' % (self._head, uuid(*identity))


def uuid(*identity: object) -> bytes:
    """Return a UUID that looks random, but is always the same for the same identity."""
    digest = blake2b("\0".join(map(str, identity)).encode(), digest_size=16).digest()
    return str(UUID(bytes=digest, version=4)).encode()


def _literal(text: bytes) -> bytes:
    """Escape text for a template of the `%` operator."""
    return text.replace(b"%", b"%%")
