"""Writes the records of the format `maxwell-json`."""

from collections.abc import Callable
from typing import final

from databus_wire.json_rows import RowWriter
from databus_wire.rows_writer import RowsWriter
from databus_wire.templates import Template

@final
class MaxwellWriter(RowsWriter):
    """Writes one record for each changed row of a table.

    row: writes rows and their values.
    heads: the start of the message of an insert, an update and a delete.
    origin: members about the change's origin, each with a comma before it.
    data: what is between the members about the key and the row.
    key_columns, key_parts: indexes of the key's columns, and what is before, between and after their values.
    key_of: returns, by the ordinals of transaction and row, the key of a row; None: it consists of the above.
    marks_commit, numbers_rows: whether the last row of a transaction has `commit`, and the others have `xoffset`.
    nulls: whether columns that are NULL are written.
    repeats_key: whether the message has the values of the key.
    """

    def __init__(
        self,
        row: RowWriter,
        heads: tuple[Template, Template, Template],
        origin: Template,
        data: bytes,
        key_columns: tuple[int, ...],
        key_parts: tuple[bytes, ...],
        key_of: Callable[[int, int], bytes] | None,
        *,
        marks_commit: bool,
        numbers_rows: bool,
        nulls: bool,
        repeats_key: bool,
    ) -> None: ...
