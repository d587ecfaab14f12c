"""Binlog files made of single events, some of which are copied from tests/golden/mysql.bin, a file of MySQL 9."""

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from databus_binlog import Gtid, Rows, Xid
from databus_cli.__main__ import main
from databus_cli.binlog.files import read_files

GOLDEN = Path(__file__).parents[2] / "golden" / "mysql.bin"
_QUERY, _TABLE_MAP, _WRITE_ROWS, _XA_PREPARE = 2, 19, 30, 38
#: number of a table in 6 bytes, and flags: the end of a statement
_TABLE_NUMBER = b"\x07\0\0\0\0\0\x01\0"
#: in a table map: SIMPLE_PRIMARY_KEY, one byte, the first column
_KEY = b"\x08\x01\x00"

Run = Callable[..., tuple[int, list[dict], list[str]]]
RunText = Callable[..., tuple[int, str, list[str]]]


class BinlogFile:
    """Collects events; `write` writes them to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._golden = GOLDEN.read_bytes()
        [head, *_] = (event for event, _ in read_files([str(GOLDEN)]))
        self._data = self._golden[: head.end]
        #: offset of each added event
        self.starts: list[int] = []

    def query(self, text: str, schema: str = "shop", thread: int = 1) -> "BinlogFile":
        name = schema.encode()
        body = struct.pack("<IIBHH", thread, 0, len(name), 0, 0) + name + b"\0" + text.encode()
        return self._add(_QUERY, body)

    def gtid(self) -> "BinlogFile":
        return self._copy(next(event for event, _ in _events() if isinstance(event, Gtid)))

    def row(self) -> "BinlogFile":
        """Add the golden file's first row of shop.items, with its table map, but without the table map's key."""
        rows = next(e for e, tables in _events() if isinstance(e, Rows) and tables[e.table].name == "items")
        # Before the names, a table map has a header of 19 bytes, and 8 bytes of table id and flags.
        table_map = self._golden.rindex(b"\x04shop\0\x05items\0", 0, rows.start) - 19 - 8
        return self._copy_at(table_map, without=_KEY)._copy(rows)

    def labels_row(self, *, names: bool) -> "BinlogFile":
        """Add the row (2, 5) of the table shop.sizes (e ENUM, s SET), with its table map, which has no labels."""
        types, metadata, nulls = b"\xfe\xfe", b"\xf7\x01\xf8\x01", b"\0"
        table = b"\x04shop\0\x05sizes\0" + b"\x02" + types + b"\x04" + metadata + nulls
        charset = b"\x0a\x01\x2d"
        self._add(_TABLE_MAP, _TABLE_NUMBER + table + charset + (b"\x04\x04\x01e\x01s" if names else b""))
        return self._add(_WRITE_ROWS, _TABLE_NUMBER + b"\x02\0" + b"\x02\xff" + b"\0\x02\x05")

    def xid(self) -> "BinlogFile":
        return self._copy(next(event for event, _ in _events() if isinstance(event, Xid)))

    def xa_prepare(self, *, one_phase: bool = False) -> "BinlogFile":
        """Add an event that prepares the XA transaction `x`; with `one_phase` it also commits it."""
        return self._add(_XA_PREPARE, struct.pack("<BIII", one_phase, 1, 1, 0) + b"x")

    def transaction(self) -> "BinlogFile":
        """Add the events of a transaction with one row."""
        return self.gtid().query("BEGIN").row().xid()

    def write(self) -> str:
        self._path.write_bytes(self._data)
        return str(self._path)

    def _copy(self, event) -> "BinlogFile":
        return self._copy_at(event.start)

    def _copy_at(self, start: int, *, without: bytes = b"") -> "BinlogFile":
        # An event is a header of 19 bytes (type at offset 4, size at offset 9), a body, and a checksum of 4 bytes.
        [size] = struct.unpack_from("<I", self._golden, start + 9)
        body = self._golden[start + 19 : start + size - 4]
        return self._add(self._golden[start + 4], body.replace(without, b"") if without else body)

    def _add(self, kind: int, body: bytes) -> "BinlogFile":
        start, size = len(self._data), 19 + len(body) + 4
        self.starts.append(start)
        event = struct.pack("<IBIIIH", 1_700_000_000, kind, 1, size, start + size, 0) + body
        self._data += event + struct.pack("<I", zlib.crc32(event))
        return self


def _events():
    return read_files([str(GOLDEN)])


@pytest.fixture
def binlog_file(tmp_path: Path) -> Callable[[str], BinlogFile]:
    def make(name: str = "binlog.000007") -> BinlogFile:
        return BinlogFile(tmp_path / name)

    return make


@pytest.fixture
def golden(tmp_path: Path) -> str:
    """The golden file of MySQL, as if it had been created when its first statement was executed."""
    data = bytearray(GOLDEN.read_bytes())
    struct.pack_into("<I", data, 4, 1_700_000_000)  # an event begins with its time, and ends with a checksum
    [size] = struct.unpack_from("<I", data, 4 + 9)
    struct.pack_into("<I", data, size, zlib.crc32(data[4:size]))
    (tmp_path / "mysql.bin").write_bytes(data)
    return str(tmp_path / "mysql.bin")


@pytest.fixture
def run_text(capsysbinary) -> RunText:
    """Run `databus binlog`; return its exit code, its output, and its lines on standard error."""

    def run(*arguments: str) -> tuple[int, str, list[str]]:
        code = main(["binlog", *arguments])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode().splitlines()

    return run


@pytest.fixture
def run(capsysbinary) -> Run:
    """Run `databus binlog`; return its exit code, its output as decoded lines, and its lines on standard error."""

    def run(*arguments: str) -> tuple[int, list[dict], list[str]]:
        code = main(["binlog", *arguments])
        out, err = capsysbinary.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err.decode().splitlines()

    return run
