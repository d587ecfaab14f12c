"""Reads a binlog file in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from databus_binlog.decoder import Decoder
from databus_binlog.events import Events

_PIECE = 1 << 20


def read_file(read: Callable[[int], bytes], decoder: Decoder) -> Iterator[Events]:
    """Call `read(size)` until it returns nothing, and yield the events in what it returns.

    Raises BinlogError, once all events before the failure have been yielded. A truncated file raises CorruptEvent.
    """
    while piece := read(_PIECE):
        yield decoder.feed_file(piece)
        while decoder.more:
            yield decoder.feed_file(b"")
    decoder.finish()
