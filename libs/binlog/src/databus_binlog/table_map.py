"""Parses table maps, which describe the columns of the rows that follow.

Layout: libs/mysql/binlog/event/rows_event.h (Table_map_event) in MySQL's source, sql/log_event.h in MariaDB's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from hashlib import blake2b

import msgspec

from databus_binlog import charsets
from databus_binlog.cursor import Cursor
from databus_binlog.gtid import Flavor


class FieldType(IntEnum):
    """Codes of column types. ENUM and SET are logged as STRING; the column's metadata distinguishes the three."""

    DECIMAL, TINY, SHORT, LONG, FLOAT, DOUBLE, NULL, TIMESTAMP = range(8)
    LONGLONG, INT24, DATE, TIME, DATETIME, YEAR, NEWDATE, VARCHAR = range(8, 16)
    BIT, TIMESTAMP2, DATETIME2, TIME2, TYPED_ARRAY = range(16, 21)
    BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
    VECTOR, JSON, NEWDECIMAL, ENUM, SET = 242, 245, 246, 247, 248
    BLOB, VAR_STRING, STRING, GEOMETRY = 252, 253, 254, 255


NOT_LOGGED = -1  #: value of ColumnMap.metadata if the server does not log it

_T = FieldType
_NUMERIC = {_T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG, _T.NEWDECIMAL, _T.FLOAT, _T.DOUBLE, _T.YEAR}
_CHARACTER = {_T.STRING, _T.VAR_STRING, _T.VARCHAR, _T.BLOB, _T.VARCHAR_COMPRESSED, _T.BLOB_COMPRESSED}
_LABELLED = {_T.ENUM, _T.SET}
_HASH = re.compile(r"DB_ROW_HASH_\d+")
_OLD_TEMPORAL = {_T.TIME, _T.DATETIME, _T.TIMESTAMP}

# The types by the size and byte order of their metadata. STRING has a layout of its own (see _type_of), all other types
# have no metadata.
_TWO_BYTES_LITTLE_ENDIAN = {_T.VARCHAR, _T.VAR_STRING, _T.VARCHAR_COMPRESSED}
_TWO_BYTES = {_T.NEWDECIMAL, _T.BIT}
_ONE_BYTE = {
    _T.FLOAT, _T.DOUBLE, _T.TIMESTAMP2, _T.DATETIME2, _T.TIME2,
    _T.BLOB, _T.BLOB_COMPRESSED, _T.JSON, _T.GEOMETRY, _T.VECTOR,
}  # fmt: skip


class ColumnMap(msgspec.Struct, frozen=True, kw_only=True):
    """One column. A field that the server did not log is None (name: "", metadata: NOT_LOGGED, visible: True)."""

    name: str = ""
    type: int  #: a FieldType, with ENUM and SET distinguished from STRING
    #: depends on the type. VARCHAR, STRING: maximum number of bytes; BLOB, JSON, GEOMETRY, VECTOR: bytes of the length
    #: that precedes a value; NEWDECIMAL: precision << 8 | scale; BIT: number of bits; FLOAT, DOUBLE, ENUM, SET: bytes
    #: of a value; TIME2, DATETIME2, TIMESTAMP2: fractional digits; TIME, DATETIME, TIMESTAMP (the types before MySQL
    #: 5.6): fractional digits, on MariaDB NOT_LOGGED; other types: 0
    metadata: int
    nullable: bool
    unsigned: bool | None = None
    collation: int | None = None
    charset: str | None = None
    values: tuple[str, ...] | None = None  #: labels of ENUM and SET
    geometry_type: int | None = None
    dimensions: int | None = None  #: of VECTOR
    visible: bool = True


class TableMap(msgspec.Struct, frozen=True, kw_only=True):
    """One table and the layout of its rows."""

    schema: str
    name: str
    columns: tuple[ColumnMap, ...]
    #: indexes of the columns of the key by which the server identifies rows: the primary key, or without one the first
    #: unique index over whole NOT NULL columns; empty if there is none or it is not logged
    key: tuple[int, ...] = ()
    #: the key contains prefixes of columns; if it is a unique index, they are as long as the columns
    key_has_prefix: bool = False
    has_names: bool  #: the columns have names: logged (binlog_row_metadata=FULL), or added by `describe`
    #: MariaDB: number of hidden BIGINT columns after `columns`, which contain hashes of unique TEXT and BLOB columns
    hidden: int = 0
    fingerprint: str  #: equal for equal definitions, independent of the table's number

    @property
    def full_name(self) -> str:
        """The name `schema.table`."""
        return f"{self.schema}.{self.name}"

    def described_as(self, complete: TableMap) -> TableMap:
        """Return `complete`, a copy of this description with additions, under a fingerprint that covers them."""
        if complete == self:
            return self
        definition = msgspec.msgpack.encode(complete)
        return msgspec.structs.replace(complete, fingerprint=_fingerprint(definition))


def names_of(layout: bytes) -> tuple[str, str]:
    """Read only schema and table name of a TABLE_MAP."""
    return _names(Cursor(layout))


def _names(cursor: Cursor) -> tuple[str, str]:
    schema, name = (cursor.take(cursor.uint(1) + 1)[:-1].decode() for _ in range(2))
    return schema, name


def parse_table_map(layout: bytes, flavor: Flavor, collations: Mapping[int, str]) -> TableMap:
    """Parse a TABLE_MAP's body after number and flags. Raises IndexError, KeyError or ValueError if it is malformed."""
    cursor = Cursor(layout)
    schema, name = _names(cursor)
    codes = cursor.take(cursor.lenenc())
    metadata = Cursor(cursor.lenenc_bytes())
    types = [_type_of(code, metadata, flavor) for code in codes]
    nulls = cursor.take((len(codes) + 7) // 8)
    extra = _Extra(flavor, collations, [FieldType(code) for code, _ in types])
    while cursor:
        kind = cursor.uint(1)
        extra.read(kind, cursor.lenenc_bytes())
    columns = [
        ColumnMap(
            name=extra.names[index] if extra.names else "",
            type=code,
            metadata=meta,
            nullable=bool(nulls[index >> 3] >> (index & 7) & 1),
            unsigned=extra.unsigned.get(index),
            collation=extra.collation.get(index),
            charset=extra.charset(index),
            values=extra.labels(index),
            geometry_type=extra.geometry.get(index),
            dimensions=extra.dimensions.get(index),
            visible=extra.visible.get(index, True),
        )
        for index, (code, meta) in enumerate(types)
    ]
    shown = len(columns)
    while flavor == "mariadb" and shown and _is_hash(columns[shown - 1]):
        shown -= 1
    return TableMap(
        schema=schema,
        name=name,
        columns=tuple(columns[:shown]),
        key=extra.key,
        key_has_prefix=extra.key_has_prefix,
        has_names=bool(extra.names),
        hidden=len(columns) - shown,
        fingerprint=_fingerprint(layout),
    )


def _is_hash(column: ColumnMap) -> bool:
    """Return whether MariaDB created the column itself, for a hash (sql/sql_table.cc, add_hash_field)."""
    return (
        column.type == _T.LONGLONG
        and bool(column.unsigned)
        and column.nullable
        and _HASH.fullmatch(column.name) is not None
    )


def _type_of(code: int, metadata: Cursor, flavor: Flavor) -> tuple[int, int]:
    """Return the real type, and the type's metadata as one number (see ColumnMap.metadata)."""
    if code in _TWO_BYTES_LITTLE_ENDIAN:
        return code, metadata.uint(2)
    if code == _T.STRING:
        first, second = metadata.take(2)
        if first in (_T.ENUM, _T.SET, _T.STRING):
            return first, second
        # CHAR of more than 255 bytes: bits 8 and 9 of the length are stored, inverted, in bits 4 and 5 of the type.
        return first | 0x30, second | (first & 0x30 ^ 0x30) << 4
    if code in _TWO_BYTES:
        first, second = metadata.take(2)
        return code, second * 8 + first if code == _T.BIT else first << 8 | second
    if code in _OLD_TEMPORAL and flavor == "mariadb":
        return code, NOT_LOGGED
    return int(FieldType(code)), metadata.uint(1) if code in _ONE_BYTE else 0


class _Extra:
    """The optional fields of a table map (binlog_row_metadata), by the index of the column."""

    def __init__(self, flavor: Flavor, collations: Mapping[int, str], types: list[FieldType]) -> None:
        self._collations = collations
        self._count = len(types)
        # Besides text, MariaDB 10.11 lists the collation (63, binary) of GEOMETRY columns, MySQL 9.7 that of VECTOR.
        character = _CHARACTER | {_T.GEOMETRY if flavor == "mariadb" else _T.VECTOR}
        self._numeric = [i for i, t in enumerate(types) if t in _NUMERIC]
        self._character = [i for i, t in enumerate(types) if t in character]
        self._labelled = [i for i, t in enumerate(types) if t in _LABELLED]
        self._of_type = {
            t: [i for i, u in enumerate(types) if u == t] for t in (_T.ENUM, _T.SET, _T.GEOMETRY, _T.VECTOR)
        }
        self._labels: dict[int, list[bytes]] = {}
        self.names: list[str] = []
        self.unsigned: dict[int, bool] = {}
        self.collation: dict[int, int] = {}
        self.geometry: dict[int, int] = {}
        self.dimensions: dict[int, int] = {}
        self.visible: dict[int, bool] = {}
        self.key: tuple[int, ...] = ()
        self.key_has_prefix = False

    def read(self, kind: int, value: bytes) -> None:
        """Read one field; unknown fields are skipped, as the protocol intends."""
        cursor = Cursor(value)
        match kind:
            case 1:  # SIGNEDNESS
                self.unsigned = {column: _bit(value, i) for i, column in enumerate(self._numeric)}
            case 2:  # DEFAULT_CHARSET
                self._default_collation(self._character, list(cursor.rest()))
            case 3:  # COLUMN_CHARSET
                self.collation.update(zip(self._character, cursor.rest(), strict=True))
            case 4:  # COLUMN_NAME
                self.names = [cursor.lenenc_bytes().decode() for _ in range(self._count)]
            case 5 | 6:  # SET_STR_VALUE, ENUM_STR_VALUE
                for column in self._of_type[_T.SET if kind == 5 else _T.ENUM]:
                    self._labels[column] = [cursor.lenenc_bytes() for _ in range(cursor.lenenc())]
            case 7:  # GEOMETRY_TYPE
                self.geometry = dict(zip(self._of_type[_T.GEOMETRY], cursor.rest(), strict=True))
            case 8 | 9:  # SIMPLE_PRIMARY_KEY, PRIMARY_KEY_WITH_PREFIX: each column, or column and length of its prefix
                self.key, self.key_has_prefix = tuple(cursor.rest())[:: kind - 7], kind == 9
            case 10:  # ENUM_AND_SET_DEFAULT_CHARSET
                self._default_collation(self._labelled, list(cursor.rest()))
            case 11:  # ENUM_AND_SET_COLUMN_CHARSET
                self.collation.update(zip(self._labelled, cursor.rest(), strict=True))
            case 12:  # COLUMN_VISIBILITY
                self.visible = {i: _bit(value, i) for i in range(self._count)}
            case 13:  # VECTOR_DIMENSIONALITY
                self.dimensions = dict(zip(self._of_type[_T.VECTOR], cursor.rest(), strict=True))

    def _default_collation(self, columns: list[int], numbers: list[int]) -> None:
        default, *exceptions = numbers
        self.collation.update(dict.fromkeys(columns, default))
        self.collation.update((columns[i], c) for i, c in zip(exceptions[::2], exceptions[1::2], strict=True))

    def charset(self, column: int) -> str | None:
        """Return the column's character set: "collation N" if the server's list lacks N, None if none is logged."""
        collation = self.collation.get(column)
        return None if collation is None else self._collations.get(collation, f"collation {collation}")

    def labels(self, column: int) -> tuple[str, ...] | None:
        """Return the labels of an ENUM or SET column."""
        labels = self._labels.get(column)
        return None if labels is None else tuple(charsets.to_text(label, self.charset(column)) for label in labels)


def _fingerprint(definition: bytes) -> str:
    return blake2b(definition, digest_size=12).hexdigest()


def _bit(bitmap: bytes, index: int) -> bool:
    """Return a bit of a bitmap that begins with the most significant bit of its first byte."""
    return bool(bitmap[index >> 3] >> (7 - (index & 7)) & 1)
