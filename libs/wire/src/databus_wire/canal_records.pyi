"""Writes the records of the format `canal-json`."""

from collections.abc import Callable
from typing import TypeAlias, final

from databus_wire.json_rows import RowWriter
from databus_wire.rows_writer import RowsWriter
from databus_wire.templates import Template

#: a message: up to the value of `data`, from there to that of `old`, to that of `sqlType`, and the rest
Message: TypeAlias = tuple[bytes, Template, bytes, Template]

@final
class CanalWriter(RowsWriter):
    """Writes one record for each rows event of a table.

    rows: writes the rows.
    messages: of an insert, an update and a delete.
    types: `sqlType`, or a function that returns it for the last row.
    """

    def __init__(
        self,
        rows: RowWriter,
        messages: tuple[Message, Message, Message],
        types: bytes | Callable[[list[bytes | None]], bytes],
    ) -> None: ...
