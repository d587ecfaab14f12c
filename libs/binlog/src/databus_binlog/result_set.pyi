"""Cuts the answer to a SELECT out of packets (text protocol), and packs its rows."""

from collections.abc import Sequence
from typing import final

from databus_binlog.row_batch import Conversion, RowBatch

@final
class ResultSet:
    """The answer to one SELECT.

    conversions: one for each column; empty: all values stay as the server prints them. batch: bytes of packed rows
    after which a batch is complete. deprecate_eof: the connection has the capability CLIENT_DEPRECATE_EOF.
    """

    #: the server has sent everything, and can receive the next command
    complete: bool
    #: code and message of the error with which the server ended the result set
    refusal: tuple[int, str] | None
    def __init__(self, conversions: Sequence[Conversion] = (), *, batch: int, deprecate_eof: bool) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview, size: int = -1) -> list[RowBatch]:
        """Read the first `size` bytes of `data`, by default all, and return the batches that are now complete.

        The last batch is complete at the end of the result set. Raises CorruptResult for bytes that are no result set.
        """
