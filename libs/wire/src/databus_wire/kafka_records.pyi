"""Records as in Kafka's record batches, version 2."""

from collections.abc import Sequence

class RecordPacker:
    """Packs the records of a batch one after the other."""

    #: bytes, with the header
    size: int
    #: records
    count: int
    #: times of the first and the latest record, ms since the epoch
    first_ms: int
    last_ms: int
    #: whether the batch takes no more records
    closed: bool

    def __init__(self, header: int, limit: int) -> None:
        """Leave `header` bytes free for the batch's header. `limit` is the largest size, with the header."""

    def append(
        self, time_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """Pack a record; return False if there is no room for it or the batch is closed. The first always has room."""

    def extend(self, time_ms: int, keys: list[bytes | None], values: list[bytes | None], first: int = 0) -> int:
        """Pack records without headers, from index `first` until there is no room; return how many were packed."""

    def close(self) -> None:
        """Take no more records."""

    def packed(self) -> bytearray:
        """Close, and return header and records: the same bytearray each time, which belongs to the caller."""
