"""The typed columns of Parquet files."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from common.dump_output import Folder
from databus_core.errors import FatalError
from databus_core.events import Column, Table
from databus_core.manifest import FileFormat
from databus_dump_api.parts import PartWriter

LAST_TIMESTAMP = datetime(2038, 1, 19, 3, 14, 7, 500_000, UTC)


def column(raw_type: str, *values: str) -> Column:
    name, _, rest = raw_type.partition("(")
    return Column(name="c", type=name.split()[0], raw_type=raw_type, unsigned="unsigned" in rest, values=values)


def written(folder: Path, described: Column, *texts: bytes | None, strict: bool = False) -> pyarrow.ChunkedArray:
    table = Table(schema="shop", name="t", columns=(described,))
    parts = PartWriter(Folder(folder), table, FileFormat.PARQUET_TYPED, 2**20, strict=strict)
    try:
        parts.write([[text] for text in texts])
        [file] = parts.close()
    finally:
        parts.abandon()
    assert file.name == "shop.t.00001.typed.parquet"
    assert not file.strict
    return parquet.read_table(folder / file.name).column(0)


@pytest.mark.parametrize(
    ("described", "text", "kind", "value"),
    [
        (column("tinyint(4)"), b"-128", "int32", -128),
        (column("mediumint(8) unsigned"), b"16777215", "int32", 16777215),
        (column("year(4)"), b"0", "int32", 0),
        (column("int(11)"), b"-2147483648", "int32", -(2**31)),
        (column("int(10) unsigned"), b"4294967295", "int64", 2**32 - 1),
        (column("bigint(20)"), b"-9223372036854775808", "int64", -(2**63)),
        (column("bigint(20) unsigned"), b"18446744073709551615", "decimal128(20, 0)", Decimal(2**64 - 1)),
        (column("bit(63)"), b"9223372036854775807", "int64", 2**63 - 1),
        (column("bit(64)"), b"18446744073709551615", "decimal128(20, 0)", Decimal(2**64 - 1)),
        (column("decimal(38,30)"), b"-1." + b"9" * 30, "decimal128(38, 30)", Decimal("-1." + "9" * 30)),
        (column("decimal(39,0)"), b"9" * 39, "string", "9" * 39),
        (column("float"), b"3.4028235e38", "float", 3.4028234663852886e38),
        (column("double"), b"5e-324", "double", 5e-324),
        (column("date"), b"9999-12-31", "date32[day]", date(9999, 12, 31)),
        (column("datetime(6)"), b"2026-11-25 10:00:00.000001", "timestamp[us]", datetime(2026, 11, 25, 10, 0, 0, 1)),
        (column("timestamp(1)"), b"2038-01-19 03:14:07.5", "timestamp[us, tz=UTC]", LAST_TIMESTAMP),
        (column("time(6)"), b"-838:59:59.000001", "string", "-838:59:59.000001"),
        (column("enum('a','b')", "a", "b"), b"2", "string", "b"),
        (column("enum('a','b')", "a", "b"), b"0", "string", ""),
        (column("set('a','b','c')", "a", "b", "c"), b"5", "string", "a,c"),
        (column("json"), b'{"a": 1}', "string", '{"a": 1}'),
        (column("blob"), b"\0\xff", "binary", b"\0\xff"),
    ],
    ids=lambda value: value.raw_type if isinstance(value, Column) else "",
)  # fmt: skip
@pytest.mark.parametrize("strict", [False, True])
def test_values_are_exact(
    tmp_path: Path, described: Column, text: bytes, kind: str, value: object, strict: bool
) -> None:
    found = written(tmp_path, described, text, None, strict=strict)
    assert (str(found.type), found.to_pylist()) == (kind, [value, None])


@pytest.mark.parametrize(
    ("raw_type", "text"),
    [
        ("date", b"0000-00-00"),
        ("date", b"2026-00-10"),
        ("datetime", b"0000-00-00 00:00:00"),
        ("timestamp", b"0000-00-00 00:00:00"),
        ("decimal(5,2)", b"1000.00"),
        ("set('a')", b"8"),
        ("enum('a')", b"8"),
    ],
)
def test_a_value_that_does_not_fit_fails_the_dump_and_is_not_quoted(tmp_path: Path, raw_type: str, text: bytes) -> None:
    with pytest.raises(FatalError, match=r"column c of shop\.t has a value that Parquet's type") as raised:
        written(tmp_path, column(raw_type, "a"), text)
    assert text.decode() not in str(raised.value)
    assert raised.value.__suppress_context__
