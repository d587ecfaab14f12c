"""How far the dump that is being taken has come."""

from time import monotonic

from databus_core.manifest import DumpProgress
from databus_core.metrics import dumps as metrics


class Progress:
    """Counts the rows of one dump."""

    def __init__(self) -> None:
        #: the server's estimate of the rows of all tables
        self.estimated = 0
        self._read = 0
        self._written = 0
        #: rows that were written before this attempt
        self._before = 0
        self._began = monotonic()

    def begin(self, estimated: int, written: int = 0) -> None:
        """Begin to read tables that have about so many rows, of which some were written earlier."""
        self.estimated = max(0, estimated - written)
        self._read, self._written, self._before = 0, 0, written
        self._began = monotonic()

    def add(self, *, read: int, written: int) -> None:
        """Count rows that were read, and those of them that were written: a rule may hide some."""
        self._read += read
        self._written += written
        metrics.ROWS.inc(written)

    def shown(self, size: int) -> DumpProgress:
        """Describe the state to clients; `size` is the number of bytes in the dump's files."""
        estimated = max(self.estimated, self._read)
        remaining = None
        if self._read:
            remaining = round((monotonic() - self._began) / self._read * (estimated - self._read), 1)
        return DumpProgress(self._before + self._written, size, self._before + estimated, remaining)
