"""Keys of Maxwell's Kafka records."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal
from uuid import UUID

from databus.events import Table
from databus_messages.formats.maxwell_values import encode

KeyFormat = Literal["hash", "array"]


class KeyWriter:
    """Writes the keys of a table's rows: of the primary key's values, or of a UUID where there is none."""

    def __init__(self, table: Table, key_format: KeyFormat) -> None:
        names = [table.columns[place].name.lower() for place in table.primary_key]
        schema, name = encode(table.schema), encode(table.name)
        if key_format == "array":
            head = b"[%b,%b,[" % (schema, name)
            members = b",".join(b"{%b:%%b}" % _literal(encode(name)) for name in names)
            self._keyed, self._keyless = _literal(head) + members + b"]]", head + b"]]"
        else:
            head = b'{"database":%b,"table":%b,' % (schema, name)
            members = b",".join(b"%b:%%b" % _literal(encode(f"pk.{name}")) for name in names)
            self._keyed, self._keyless = _literal(head) + members + b"}", b""
        self._head = head

    def of_row(self, values: Sequence[bytes], *identity: object) -> bytes:
        """Write the key of a row by the JSON of its primary key's values, or else by what tells it from all others."""
        return self._keyed % tuple(values) if values else self.of_none(*identity)

    def of_none(self, *identity: object) -> bytes:
        """Write the key of what has no primary key."""
        return self._keyless or b'%b"_uuid":"%b"}' % (self._head, uuid(*identity))


def uuid(*identity: object) -> bytes:
    """Make a UUID that is like a random one, yet the same whenever the same message is made again."""
    digest = blake2b("\0".join(map(str, identity)).encode(), digest_size=16).digest()
    return str(UUID(bytes=digest, version=4)).encode()


def _literal(text: bytes) -> bytes:
    """Write what stands for this text in a template for the `%` operator."""
    return text.replace(b"%", b"%%")
