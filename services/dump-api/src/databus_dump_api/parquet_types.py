"""The columns of the format `parquet-typed`: numbers, dates and labels with Parquet's own types.

A type is chosen for a column only if it has every value of the column, with one exception: zero and incomplete dates,
which a server accepts with a lax sql_mode, are refused. All other columns keep their text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow

from databus_core.errors import FatalError
from databus_core.events import Column, Table
from databus_messages.formats.columns import LABELLED, label_encoder, type_arguments

_Convert: TypeAlias = Callable[[pyarrow.Array], pyarrow.Array]

#: integers whose unsigned values fit 32 bits with a sign
_SMALL = {"tinyint", "smallint", "mediumint", "year"}
#: the most digits of a decimal that readers of Parquet support
_MOST_DIGITS = 38
#: for numbers of 64 bits without a sign; not every reader of Parquet has such integers
_UINT64 = pyarrow.decimal128(20, 0)
_TIME = pyarrow.timestamp("us")
_FIXED = {
    "float": pyarrow.float32(),
    "double": pyarrow.float64(),
    "date": pyarrow.date32(),
    "datetime": _TIME,
}


@dataclass(frozen=True)
class TypedColumn:
    """The type of a column, and the conversion of its canonical text, an array of strings, to this type."""

    type: pyarrow.DataType
    _convert: _Convert

    def convert(self, table: Table, column: Column, text: pyarrow.Array) -> pyarrow.Array:
        """Convert values. Raises FatalError if one of them does not fit the type."""
        try:
            return self._convert(text)
        except (pyarrow.ArrowInvalid, LookupError, ValueError):  # their texts quote values
            raise FatalError(
                f"column {column.name} of {table.full_name} has a value that Parquet's type {self.type} lacks, for "
                "example a zero date: correct the value, or choose parquet instead of parquet-typed in dumps.formats"
            ) from None


def typed_column(column: Column) -> TypedColumn | None:
    """Return how a column is typed; None if it keeps its text."""
    if column.type in LABELLED:
        return TypedColumn(pyarrow.string(), _labels(column))
    if column.type == "timestamp":
        zoned = pyarrow.timestamp("us", "UTC")
        return TypedColumn(zoned, lambda text: text.cast(_TIME).view(zoned))
    found = _FIXED.get(column.type) or _number(column)
    return TypedColumn(found, lambda text: text.cast(found)) if found else None


def _number(column: Column) -> pyarrow.DataType | None:
    """Return the type of an exact number; None if it is none, or has too many digits."""
    arguments = type_arguments(column)
    if column.type == "decimal":
        digits, scale = arguments if len(arguments) == 2 else (*arguments, 0) if arguments else (10, 0)
        return pyarrow.decimal128(digits, scale) if digits <= _MOST_DIGITS else None
    if column.type in _SMALL or (column.type == "int" and not column.unsigned):
        return pyarrow.int32()
    if column.type == "int" or (column.type == "bigint" and not column.unsigned):
        return pyarrow.int64()
    if column.type == "bit":
        return pyarrow.int64() if (arguments or (1,))[0] < 64 else _UINT64
    return _UINT64 if column.type == "bigint" else None


def _labels(column: Column) -> _Convert:
    """Return the conversion of an ENUM's or SET's numbers to labels; the labels of a SET are joined by commas."""
    encode = label_encoder(column, str, ",".join)

    def convert(text: pyarrow.Array) -> pyarrow.Array:
        encoded = text.dictionary_encode()
        labels = [encode(value.encode()) for value in encoded.dictionary.to_pylist()]
        return pyarrow.array(labels, pyarrow.string()).take(encoded.indices)

    return convert
