"""Parts in the formats `parquet` and `parquet-typed`: the table's columns, compressed with zstd.

In `parquet` a value is what JSON lines have in base64, so whoever reads either has the same bytes. Text and numbers are
Parquet strings; values of binary types, and all values of tables with `compat: strict`, whose text may be in any
character set, are byte arrays. What differs in `parquet-typed` is in `parquet_types`.
"""

from collections.abc import Callable, Sequence

import msgspec
import pyarrow
from pyarrow import parquet

from databus_core.events import Column, Row, Table
from databus_dump_api.parquet_types import typed_column
from databus_dump_api.part_file import PartFile
from databus_messages.formats.columns import FLOATS, INTEGERS, LABELLED, TEMPORAL, TEXT
from databus_messages.formats.databus_strict import strict_columns
from databus_wire.columns import columns
from databus_wire.packed_rows import PackedRows

_STRINGS = INTEGERS | FLOATS | LABELLED | TEMPORAL | TEXT | {"decimal", "bit", "year", "json"}
#: bytes of values in memory, at which they are written as a row group; readers split files at row groups
_ROW_GROUP = 32 * 2**20
_pack = msgspec.msgpack.Encoder().encode


class ParquetPart:
    """Writes rows to one file."""

    def __init__(self, file: PartFile, table: Table, *, strict: bool, typed: bool = False) -> None:
        self.file = file
        self._table = table
        self._typed = [typed_column(column) if typed else None for column in table.columns]
        self._texts = strict_columns(table) if strict else (None,) * len(table.columns)
        self._text_types = [pyarrow.binary() if strict else _type(column) for column in table.columns]
        types = [typed.type if typed else text for typed, text in zip(self._typed, self._text_types, strict=True)]
        self._schema = pyarrow.schema(list(zip((column.name for column in table.columns), types, strict=True)))
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd", store_schema=False)
        #: packed rows
        self._batches: list[bytes] = []
        #: bytes of the batches
        self._waiting = 0

    @property
    def size(self) -> int:
        """Bytes of the file so far, and of the values that are still in memory."""
        return self.file.bytes + self._waiting

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        if any(self._texts):
            rows = [list(map(_convert, self._texts, row)) for row in rows]
        packed = bytes(rows.packed) if isinstance(rows, PackedRows) else _pack(rows)
        self._batches.append(packed)
        self._waiting += len(packed)
        if self._waiting >= _ROW_GROUP:
            self._write_row_group()

    def finish(self) -> None:
        """Write what is still in memory."""
        if self._batches:
            self._write_row_group()
        self._writer.close()

    def abandon(self) -> None:
        """Remove the file."""
        self._writer.is_open = False  # otherwise it writes a footer when it is collected
        self.file.abandon()

    def _write_row_group(self) -> None:
        count, found = columns(self._batches, len(self._schema))
        self._batches, self._waiting = [], 0
        # No array is checked for UTF-8: the database may have other bytes.
        arrays = [
            pyarrow.Array.from_buffers(text_type, count, list(map(pyarrow.py_buffer, buffers)), nulls)
            for text_type, (*buffers, nulls) in zip(self._text_types, found, strict=True)
        ]
        arrays = [
            typed.convert(self._table, column, array) if typed else array
            for typed, column, array in zip(self._typed, self._table.columns, arrays, strict=True)
        ]
        rows = pyarrow.Table.from_arrays(arrays, schema=self._schema)
        self._writer.write_table(rows, row_group_size=count)


def _convert(text: Callable[[bytes], bytes] | None, cell: bytes | None) -> bytes | None:
    return cell if cell is None or text is None else text(cell)


def _type(column: Column) -> pyarrow.DataType:
    return pyarrow.string() if column.type in _STRINGS else pyarrow.binary()
