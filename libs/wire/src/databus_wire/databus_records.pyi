"""Writes the records of the format `databus`."""

from collections.abc import Callable
from typing import final

from databus_wire.rows_writer import RowsWriter

@final
class DatabusWriter(RowsWriter):
    """Writes one record for each rows event of a table.

    heads: the value of an insert, an update and a delete, from its start to the name of the rows.
    position_of: returns for a binlog file the key from its start to the offset.
    """

    def __init__(self, heads: tuple[bytes, bytes, bytes], position_of: Callable[[str], bytes]) -> None: ...
