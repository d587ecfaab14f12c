"""Changes as Arrow: the rows of many changes at a time, in columns with types.

The columns are those of the table, `_action` (`insert`, `update_before`, `update_after`, `delete`) and `_sequence`
(empty for rows of a dump). docs/reference/client.md lists the types.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from databus.block import Block
from databus.bookmark import Bookmark
from databus.formats.databus import DatabusRows
from databus.trail import Mark, Trail
from databus.values import labels_of
from databus_core.definitions import sized_type
from databus_core.errors import InvalidSettings, SchemaMismatch
from databus_core.events import Action, Column, Table

_UPDATE = ["update_before", "update_after"]
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TYPES = {
    **{f"{name}{sign}": getattr(pa, f"{prefix}int{bits}")()
       for name, bits in _INTEGERS.items() for sign, prefix in (("", ""), (" unsigned", "u"))},
    "year": pa.int16(),
    "bit": pa.uint64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    **dict.fromkeys(
        ("time", "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "enum", "set"), pa.string()
    ),
}  # fmt: skip


class ChangeBatch:
    """The rows of changes of one table with one definition; or a statement, which changes the table."""

    def __init__(self, table: Table, rows: pa.RecordBatch, statement: str | None, mark: Mark, last: int) -> None:
        #: columns and key; of a statement, those after it
        self.table = table
        #: the row images; none of a statement
        self.rows = rows
        #: text of a statement
        self.statement = statement
        self._mark = mark
        self._last = last

    def bookmark(self) -> Bookmark:
        """Return what is done once this batch and all before it are: for a store of your own."""
        return self._mark.bookmark(self._last)

    async def ack(self) -> None:
        """Save in the store that this batch and all before it are done. Without a store it does nothing."""
        await self._mark.save(self._last)


def arrow_type(column: Column) -> pa.DataType:
    """Return the type of a column."""
    kind, size, scale = sized_type(column)
    if kind == "decimal":
        return pa.decimal128(size or 10, scale) if (size or 10) <= 38 else pa.decimal256(size, scale)
    unsigned = " unsigned" if kind in _INTEGERS and "unsigned" in column.raw_type.lower() else ""
    return _TYPES.get(f"{kind}{unsigned}", pa.binary())


class BatchBuilder:
    """Collects the rows of blocks of one table with one definition, or takes one statement."""

    def __init__(self, block: Block, trail: Trail) -> None:
        """Begin with a block. Raises InvalidSettings if its format is not `databus`."""
        if not isinstance(block.rows, DatabusRows):
            name = block.rows.table.full_name
            raise InvalidSettings(f"{name} is not published in format databus, which batches need")
        self._rows = block.rows
        self._statement = block.query
        #: the texts of each column: row images would keep the garbage collector busy
        self._cells: list[list[bytes | None]] = [[] for _ in block.rows.table.columns]
        self._actions: list[str] = []
        self._sequences: list[str] = []
        self._add(block, trail)

    def accepts(self, block: Block | None, trail: Trail, rows: int) -> bool:
        """Add a block, if it has rows of the same table and the batch has fewer than `rows`. Return whether it has."""
        fits = block is not None and block.rows is self._rows and block.query is None and self._statement is None
        if block is None or not fits or len(self._actions) >= rows:
            return False
        self._add(block, trail)
        return True

    def _add(self, block: Block, trail: Trail) -> None:
        names = _UPDATE if block.action is Action.UPDATE else [block.action.value]
        images = block.images[len(names) * block.done :]
        for column, cells in zip(self._cells, zip(*images, strict=True), strict=bool(images)):
            column.extend(cells)
        self._actions += names * (len(images) // len(names))
        self._sequences += [block.origin.sequence] * len(images)
        self._mark, self._last = trail.deliver(block.origin, block.size), block.size - 1

    def build(self) -> ChangeBatch:
        """Make the batch.

        Raises SchemaMismatch if a value does not fit its Arrow type, such as the date 0000-00-00.
        """
        table = self._rows.table
        columns = [_column(table, column, cells) for column, cells in zip(table.columns, self._cells, strict=True)]
        fields = [pa.field(column.name, array.type) for column, array in zip(table.columns, columns, strict=True)]
        schema = pa.schema([*fields, pa.field("_action", pa.string()), pa.field("_sequence", pa.string())])
        arrays = [*columns, pa.array(self._actions, pa.string()), pa.array(self._sequences, pa.string())]
        rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return ChangeBatch(table, rows, self._statement, self._mark, self._last)


def _column(table: Table, column: Column, cells: Sequence[bytes | bool | None]) -> pa.Array:
    kind = arrow_type(column)
    try:
        texts = pa.array(cells, pa.binary())
        return _converted(column, texts, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        reason = "lacks it" if False in cells else f"has a value that Arrow's {kind} does not have"
        text = f"column {column.name} of {table.full_name}: a row {reason}: read its changes one by one"
        raise SchemaMismatch(text) from error


def _converted(column: Column, texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind == pa.binary():
        return texts
    strings: Any = texts.cast(pa.string())
    if labels := labels_of(column):
        numbers = strings.cast(pa.uint64()).to_pylist()
        return pa.array([None if number is None else labels(number) for number in numbers], pa.string())
    if pa.types.is_timestamp(kind) and kind.tz:
        return pc.assume_timezone(strings.cast(pa.timestamp("us")), "UTC")
    return strings if kind == pa.string() else strings.cast(kind)
