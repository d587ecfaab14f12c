r"""The `databus` format: what the original Go server's consumers read, with exact values.

Key: `{"Pos":{"Name":FILE,"Pos":END},"Action":"DML|DDL"}` with the end offset of the event itself, so that a consumer
that compares with `>` sees the first change after a snapshot. Value: a `RowsEvent` (`Table`, `Action`, `Rows` of base64
cells or null) or a `QueryEvent` (`Table`, `Action`, `Query` in base64). Members stand in the original's order, without
white space; strings are escaped as Go does (`<`, `>`, `&`, U+2028 and U+2029 as `\u….`).
"""

import re
from collections.abc import Sequence

import msgspec

from databus.events import Action, Column, QueryEvent, Row, RowsEvent, Table, decode_rows

_json = msgspec.json.Encoder().encode

# The original's rules, in its order; the first that matches COLUMN_TYPE counts. It files YEAR and all that contains
# `int` under NUMBER, a `point` too.
_TYPES = (
    (re.compile("int|^year"), 1),
    (re.compile("^(float|double|decimal)"), 2),
    (re.compile("^enum"), 3),
    (re.compile("^set"), 4),
    (re.compile("^datetime"), 6),
    (re.compile("^timestamp"), 7),
    (re.compile("^time"), 9),
    (re.compile("^date$"), 8),
    (re.compile("^bit"), 10),
    (re.compile("^json"), 11),
)
_STRING = 5


class Encoder:
    """Encodes events; what messages have in common is encoded once for a table's schema, and for a binlog file."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, Action], bytes] = {}
        self._file = ""
        self._position = b""

    def rows(self, table: Table, file: str, event: RowsEvent) -> tuple[bytes, bytes]:
        """Encode key and value of a rows event: all its row images are one message."""
        return self._key(file, event.end, b"DML"), self.rows_value(table, event.action, decode_rows(event.rows))

    def change(self, table: Table, file: str, end: int, action: Action, rows: Sequence[Row]) -> tuple[bytes, bytes]:
        """Encode key and value of some rows of the event that ends at `end`."""
        return self._key(file, end, b"DML"), self.rows_value(table, action, rows)

    def claim_check(self, table: Table, action: Action, url: str, size: int, sha256: str) -> bytes:
        """Encode what stands for a value that is stored elsewhere, as `size` bytes."""
        check = {"url": url, "bytes": size, "sha256": sha256}
        return b'%b,"ClaimCheck":%b}' % (self._head(table, action), _json(check))

    def rows_value(self, table: Table, action: Action, rows: Sequence[Row]) -> bytes:
        """Encode row images; a snapshot's lines are such values."""
        return b'%b,"Rows":%b}' % (self._head(table, action), _json(rows))

    def query(self, table: Table, file: str, event: QueryEvent) -> tuple[bytes, bytes]:
        """Encode key and value of a DDL statement; `table` is as it is afterwards."""
        value = b'%b,"Query":%b}' % (self._head(table, event.action), _json(event.query))
        return self._key(file, event.end, b"DDL"), value

    def _head(self, table: Table, action: Action) -> bytes:
        head = self._heads.get((table.fingerprint, action))
        if head is None:
            head = b'{"Table":%b,"Action":"%b"' % (_go_json(_table(table)), action.encode())
            self._heads[table.fingerprint, action] = head
        return head

    def _key(self, file: str, end: int, kind: bytes) -> bytes:
        if file != self._file:
            self._file, self._position = file, b'{"Pos":{"Name":%b,"Pos":' % _go_json(file)
        return b'%b%d},"Action":"%b"}' % (self._position, end, kind)


def _table(table: Table) -> dict[str, object]:
    return {
        "Schema": table.schema,
        "Name": table.name,
        "Columns": [
            {
                "Name": column.name,
                "Type": _type(column),
                "RawType": column.raw_type,
                "IsAuto": column.auto_increment,
                "EnumValues": column.values if column.type == "enum" else None,
                "SetValues": column.values if column.type == "set" else None,
            }
            for column in table.columns
        ],
        # The original gives SHOW INDEX's cardinality, a statistic that changes without notice; where the server
        # knows none it gives the column's place in the index, and so do we, always.
        "Indexes": [
            {"Name": index.name, "Columns": index.columns, "Cardinality": list(range(1, len(index.columns) + 1))}
            for index in table.indexes
        ],
        "PKColumns": table.primary_key or None,
    }


def _type(column: Column) -> int:
    return next((number for rule, number in _TYPES if rule.search(column.raw_type.lower())), _STRING)


def _go_json(value: object) -> bytes:
    text = _json(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character.encode(), b"\\u%04x" % ord(character))
    return text
