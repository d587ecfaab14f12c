"""Tables and rows for streams of events: those of the golden binlogs, which have every type, and some with odd keys."""

from collections.abc import Iterator, Mapping
from functools import cache

from databus_binlog import FormatDescription
from databus_cli.binlog.definitions import NoDefinitions
from databus_cli.binlog.translation import Translation
from databus_core.events import Column, Index, Row, RowsEvent, Table, TableDefinition
from databus_core.settings import Source
from databus_wire.packed_rows import PackedRows
from golden.cases import KINDS, events

_ID = Column(name="id", type="int", raw_type="int")
_TEXT = Column(name='te"x<t>', type="varchar", raw_type="varchar(60)", nullable=True, charset="utf8mb4")
_LATIN = Column(name="latin", type="text", raw_type="text", nullable=True, charset="latin1")
_BIGINT = Column(name="big", type="bigint", raw_type="bigint unsigned", unsigned=True)
_NATIONAL = Column(name="größe", type="double", raw_type="double", nullable=True)

#: texts that JSON has to escape, or that formats escape differently
_TEXTS: list[bytes | None] = [
    None, b"", b"plain", b"null", b'"\\/', b"a\tb\n\r\x08\x0c\x00\x1f\x7f", b"<a href='&'>",
    "\u2028 \u2029 \x80".encode(), "naïve 東京 😀".encode(), b"x" * 300, "é".encode() * 150, b"2021-00-00",
    b"%s \\u0041",
]  # fmt: skip
_NUMBERS: list[bytes | None] = [b"0", b"1", b"-1", b"7", b"10", b"2147483647", b"-2147483648"]
_BIGINTS: list[bytes | None] = [b"0", b"1", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615"]
_DOUBLES: list[bytes | None] = [
    None,
    b"0",
    b"-0",
    b"0.1",
    b"1e20",
    b"-2.2250738585072014e-308",
    b"123456789012345680000",
]


def _table(name: str, columns: tuple[Column, ...], key: tuple[int, ...] = (), *indexes: Index) -> Table:
    return Table(schema="od<d", name=name, columns=columns, primary_key=key, indexes=indexes, charset="utf8mb4")


_OWN: Mapping[Table, list[list[bytes | None]]] = {
    _table("keyed", (_ID, _TEXT), (0,)): [_NUMBERS, _TEXTS],
    _table("keyless", (_TEXT, _NATIONAL)): [_TEXTS, _DOUBLES],
    _table("unique", (_TEXT, _BIGINT, _LATIN), (), Index("u", ("big",), unique=True)): [_TEXTS, _BIGINTS, _TEXTS],
    _table("twofold", (_BIGINT, _NATIONAL, _ID), (2, 0)): [_BIGINTS, _DOUBLES, _NUMBERS],
    _table("by_text", (_TEXT, _ID), (0,)): [[text for text in _TEXTS if text is not None], _NUMBERS],
}


@cache
def values_of_tables() -> Mapping[Table, list[list[bytes | None]]]:
    """Return the tables, and for each column the values that its rows may have."""
    pools: dict[Table, list[list[bytes | None]]] = {table: [[*pool] for pool in pools] for table, pools in _OWN.items()}
    for table, rows in _golden():
        for pool, column in zip(
            pools.setdefault(table, [[] for _ in table.columns]), zip(*rows, strict=True), strict=True
        ):
            pool += [value for value in column if value not in pool]
    return pools


def _golden() -> Iterator[tuple[Table, list[Row]]]:
    for kind in KINDS:
        tables: dict[str, Table] = {}
        translation: Translation | None = None
        for event, maps in events(kind):
            if isinstance(event, FormatDescription):
                translation = Translation(event, Source(), NoDefinitions(), lenient=False, inside=False)
            assert translation
            for change in translation.translate(event, maps):
                if isinstance(change, TableDefinition):
                    tables[change.table.fingerprint] = change.table
                if isinstance(change, RowsEvent):
                    yield tables[change.table], PackedRows(change.rows).unpack()
