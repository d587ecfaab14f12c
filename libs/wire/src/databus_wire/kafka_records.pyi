"""The records of Kafka's record batches, version 2."""

from collections.abc import Sequence

class RecordPacker:
    """Packs the records of a batch in order."""

    #: times of the first and the latest record, ms since the epoch
    first_ms: int
    last_ms: int

    def __init__(self, header: int, limit: int) -> None:
        """Leave `header` bytes free for the batch's header. `limit` is the largest size in bytes, with the header."""

    def append(
        self, time_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """Pack a record; return False if there is no room for it or the batch is closed. The first always has room."""

    def extend(self, time_ms: int, keys: Sequence[bytes | None], values: Sequence[bytes | None], first: int = 0) -> int:
        """Pack records without headers, from index `first` until there is no room; return how many were packed.

        Raises ValueError unless there are as many keys as values.
        """

    def size(self) -> int:
        """Size in bytes, with the header."""

    def record_count(self) -> int:
        """Number of records."""

    def close(self) -> None:
        """Take no more records."""

    def closed(self) -> bool:
        """Whether no more records are taken."""

    def packed(self) -> bytearray:
        """Close, and return header and records: the same bytearray each time, which belongs to the caller."""
