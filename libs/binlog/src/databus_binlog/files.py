"""Reads a binlog file in pieces of bounded size; raises an error at the end if the file is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from databus_binlog.decoder import Decoder
from databus_binlog.events import Events

_PIECE = 1 << 20


def read_file(read: Callable[[int], bytes], decoder: Decoder) -> Iterator[Events]:
    """Decode what `read(size)` returns until it returns nothing.

    Raises BinlogError after the events before the failure: CorruptEvent also for a file that is cut off.
    """
    while piece := read(_PIECE):
        yield decoder.feed_file(piece)
        while decoder.more:
            yield decoder.feed_file(b"")
    decoder.finish()
