"""A table map without column names gets the names of the known table only if the columns agree."""

import re

import msgspec
import pytest

from databus_binlog import ColumnMap, FieldType, TableMap
from databus_binlog.table_map import NOT_LOGGED
from databus_changes.matching import ColumnsDiffer, complete_table_map
from databus_core.events import Column, Index, Table

T = FieldType


def table(*columns: Column, indexes: tuple[Index, ...] = ()) -> Table:
    return Table(schema="shop", name="t", columns=columns, primary_key=(0,), indexes=indexes)


def table_map(*columns: ColumnMap) -> TableMap:
    return TableMap(schema="shop", name="t", columns=columns, has_names=False, fingerprint="x")


def column(raw_type: str, **attributes: object) -> Column:
    known = Column(name="c", type=re.split(r"[( ]", raw_type)[0], raw_type=raw_type, nullable=True)
    return msgspec.structs.replace(known, **attributes)


def logged(code: FieldType, metadata: int = 0, **attributes: object) -> ColumnMap:
    return msgspec.structs.replace(ColumnMap(type=code, metadata=metadata, nullable=True), **attributes)


LATIN, UTF8 = {"charset": "latin1"}, {"charset": "utf8mb4"}
FITTING = [
    (column("int(10) unsigned", unsigned=True), logged(T.LONG)),
    (column("int(11)"), logged(T.LONG, unsigned=False)),
    (column("varchar(20)", **UTF8), logged(T.VARCHAR, 80)),
    (column("varchar(20)", **LATIN), logged(T.VARCHAR, 20)),
    (column("varbinary(20)"), logged(T.VARCHAR, 20)),
    (column("char(3)", **UTF8), logged(T.STRING, 12, charset="utf8mb4")),
    (column("binary(20)"), logged(T.STRING, 20)),
    (column("uuid"), logged(T.STRING, 16)),
    (column("inet6"), logged(T.STRING, 16)),
    (column("inet4"), logged(T.STRING, 4)),
    (column("decimal(9,3)"), logged(T.NEWDECIMAL, 9 << 8 | 3)),
    (column("datetime(3)"), logged(T.DATETIME2, 3)),
    (column("datetime(3)"), logged(T.DATETIME, NOT_LOGGED)),
    (column("timestamp", nullable=False), logged(T.TIMESTAMP2)),
    (column("enum('a','b')", values=("a", "b"), **UTF8), logged(T.ENUM, 1)),
    (column("set", values=tuple("abcdefghi"), **LATIN), logged(T.SET, 2)),
    (column("text", **LATIN), logged(T.BLOB, 2)),
    (column("longtext", **UTF8), logged(T.BLOB, 4)),
    (column("json"), logged(T.JSON, 4)),
    (column("point"), logged(T.GEOMETRY, 4)),
    (column("bit(9)"), logged(T.BIT, 9)),
]


@pytest.mark.parametrize(("known", "logged_column"), FITTING)
def test_a_column_that_fits_gets_its_name(known: Column, logged_column: ColumnMap) -> None:
    complete = complete_table_map(table_map(logged_column), table(known))
    (found,) = complete.columns
    assert (found.name, complete.has_names, complete.key) == ("c", True, (0,))
    assert found.metadata == (3 if logged_column.metadata == NOT_LOGGED else logged_column.metadata)
    assert bool(found.unsigned) == known.unsigned


@pytest.mark.parametrize(
    ("known", "logged_column", "difference"),
    [
        (column("int(11)"), logged(T.LONGLONG), "type is bigint in the rows, int in the known table"),
        (column("int(11)"), logged(T.LONG, unsigned=True), "unsigned is yes in the rows, no in the known table"),
        (column("int(11)", nullable=False), logged(T.LONG), "nullable is yes in the rows, no in the known table"),
        (column("varchar(20)", **UTF8), logged(T.VARCHAR, 84), "size is (21) in the rows, (20) in the known table"),
        (column("binary(20)"), logged(T.STRING, 16), "size is (16) in the rows, (20) in the known table"),
        (column("inet4"), logged(T.STRING, 16), "size is (16) in the rows, (4) in the known table"),
        (
            column("varchar(20)", **LATIN),
            logged(T.VARCHAR, 20, charset="latin2"),
            "character set is latin2 in the rows, latin1 in the known table",
        ),
        (
            column("decimal(9,3)"),
            logged(T.NEWDECIMAL, 9 << 8 | 2),
            "size is (9,2) in the rows, (9,3) in the known table",
        ),
        (column("datetime(3)"), logged(T.DATETIME2, 6), "size is (6) in the rows, (3) in the known table"),
        (
            column("enum", values=tuple(map(str, range(256))), **UTF8),
            logged(T.ENUM, 1),
            "values of 1 bytes in the rows do not fit the 256 labels in the known table",
        ),
        (
            column("set", values=tuple("abcdefghi"), **LATIN),
            logged(T.SET, 1),
            "values of 1 bytes in the rows do not fit the 9 labels in the known table",
        ),
        (column("datetime"), logged(T.DATETIME2, 3), "size is (3) in the rows, none in the known table"),
        (column("text", **LATIN), logged(T.BLOB, 3), "type is mediumtext in the rows, text in the known table"),
        (column("text", **UTF8), logged(T.JSON, 4), "type is json in the rows, text in the known table"),
        (column("date"), logged(T.TIME2), "type is time in the rows, date in the known table"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_with_the_difference(
    known: Column, logged_column: ColumnMap, difference: str
) -> None:
    with pytest.raises(ColumnsDiffer) as refused:
        complete_table_map(table_map(logged_column), table(known))
    assert str(refused.value) == f"column c: {difference}"


def test_the_number_of_columns_must_agree_except_for_hidden_hash_columns_of_mariadb() -> None:
    text, number = column("text", **LATIN), column("bigint(20)")
    with pytest.raises(ColumnsDiffer, match="2 columns, the known table 1"):
        complete_table_map(table_map(logged(T.BLOB, 2), logged(T.LONGLONG)), table(text))
    with pytest.raises(ColumnsDiffer, match="1 columns, the known table 2"):
        complete_table_map(table_map(logged(T.BLOB, 2)), table(text, msgspec.structs.replace(number, name="n")))
    unique = table(text, indexes=(Index("u", ("c",)),))
    complete = complete_table_map(table_map(logged(T.BLOB, 2), logged(T.LONGLONG)), unique)
    assert (len(complete.columns), complete.hidden) == (1, 1)
    with pytest.raises(ColumnsDiffer, match="2 columns, the known table 1"):
        complete_table_map(table_map(logged(T.BLOB, 2), logged(T.LONGLONG, unsigned=False)), unique)
