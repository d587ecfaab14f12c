"""When which part of the pipe's entries is in Kafka."""

from collections import deque

from databus_core.metrics.publisher import FRESHNESS
from databus_core.pipe import ReadTo

#: µs between two marks: while there is a backlog, the freshness may be too large by as much
_PAUSE_US = 500_000


class Marks:
    """Notes how far the reader had read at a number of entries, until these entries are in Kafka."""

    def __init__(self, complete_us: int = 0) -> None:
        """`complete_us`: the moment that was reached before, in µs since the epoch; 0: not known."""
        self._marks: deque[ReadTo] = deque()
        self._complete_us = complete_us
        if complete_us:
            FRESHNESS.complete(complete_us / 1e6)

    def update(self, read_to: ReadTo, published: int) -> int:
        """Note how far the reader has read, and how many of the generation's first entries are in Kafka.

        Return the moment, in µs since the epoch, up to which everything is in Kafka; 0: not known.
        """
        complete = None
        if read_to.time_us and read_to.entries <= published:
            complete = read_to
            self._marks.clear()
        elif read_to.time_us and (not self._marks or abs(read_to.time_us - self._marks[-1].time_us) >= _PAUSE_US):
            self._marks.append(read_to)
        while self._marks and self._marks[0].entries <= published:
            complete = self._marks.popleft()
        if complete:
            self._complete_us = complete.time_us
            FRESHNESS.complete(complete.time_us / 1e6)
        return self._complete_us
