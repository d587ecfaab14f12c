"""Reading a binlog file: pieces of bounded size in, events out, and in the end what is wrong with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from databus_binlog.decoder import Decoder
from databus_binlog.events import Events

_PIECE = 1 << 20


def read_file(read: Callable[[int], bytes], decoder: Decoder) -> Iterator[Events]:
    """Decode what `read(size)` gives until it gives nothing.

    Raises BinlogError after the events before the failure: CorruptEvent also for a file that is cut off.
    """
    while piece := read(_PIECE):
        yield decoder.feed_file(piece)
        while decoder.more:
            yield decoder.feed_file(b"")
    decoder.finish()
