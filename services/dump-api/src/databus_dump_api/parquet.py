"""Parts in the format `parquet`: the table's columns, with the canonical text of their values, compressed with zstd.

A value is what JSON lines have in base64, so whoever reads either has the same bytes. Text and numbers are Parquet
strings; values of binary types, and all values of tables with `compat: strict`, whose text may be in any character set,
are byte arrays.
"""

from collections.abc import Sequence

import pyarrow
from pyarrow import parquet

from databus_core.events import Column, Row, Table
from databus_dump_api.part_file import PartFile
from databus_messages.formats.columns import FLOATS, INTEGERS, LABELLED, TEMPORAL, TEXT
from databus_messages.formats.databus_strict import strict_columns

_STRINGS = INTEGERS | FLOATS | LABELLED | TEMPORAL | TEXT | {"decimal", "bit", "year", "json"}
#: bytes of values in memory, at which they are written as a row group; readers split files at row groups
_ROW_GROUP = 32 * 2**20


class ParquetPart:
    """Writes rows to one file."""

    def __init__(self, file: PartFile, table: Table, *, strict: bool) -> None:
        self.file = file
        self._texts = strict_columns(table) if strict else (None,) * len(table.columns)
        types = [pyarrow.binary() if strict else _type(column) for column in table.columns]
        self._schema = pyarrow.schema(list(zip((column.name for column in table.columns), types, strict=True)))
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd", store_schema=False)
        self._batches: list[pyarrow.RecordBatch] = []
        #: bytes of the batches
        self._waiting = 0

    @property
    def size(self) -> int:
        """Bytes of the file so far, and of the values that are still in memory."""
        return self.file.bytes + self._waiting

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        arrays = []
        for cells, text, field in zip(zip(*rows, strict=True), self._texts, self._schema, strict=True):
            converted = cells if text is None else [cell if cell is None else text(cell) for cell in cells]
            # `view`, unlike `cast`, does not look whether text is UTF-8: the database may have other bytes.
            arrays.append(pyarrow.array(converted, pyarrow.binary()).view(field.type))
        batch = pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._batches.append(batch)
        self._waiting += batch.nbytes
        if self._waiting >= _ROW_GROUP:
            self._write_row_group()

    def finish(self) -> None:
        """Write what is still in memory."""
        if self._batches:
            self._write_row_group()
        self._writer.close()

    def abandon(self) -> None:
        """Close the file as it is."""
        self._writer.is_open = False  # otherwise it writes a footer when it is collected
        self.file.abandon()

    def _write_row_group(self) -> None:
        rows = pyarrow.Table.from_batches(self._batches)
        self._batches, self._waiting = [], 0
        self._writer.write_table(rows, row_group_size=len(rows))


def _type(column: Column) -> pyarrow.DataType:
    return pyarrow.string() if column.type in _STRINGS else pyarrow.binary()
