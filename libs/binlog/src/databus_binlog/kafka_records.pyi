"""Records as Kafka's record batches have them (version 2 of the format), compiled."""

from collections.abc import Sequence

class RecordPacker:
    """Packs records of a batch, one behind the other."""

    #: bytes, with the head
    size: int
    #: records
    count: int
    #: times of the first and the latest record, ms since the epoch
    first_ms: int
    last_ms: int
    #: whether no more records are taken
    closed: bool

    def __init__(self, head: int, limit: int) -> None:
        """Leave `head` bytes free for what stands before the records; `limit` is what size may reach."""

    def append(
        self, time_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """Pack a record; False if it has no room, which the first one always has, or all is closed."""

    def extend(self, time_ms: int, keys: list[bytes | None], values: list[bytes | None], first: int = 0) -> int:
        """Pack records without headers, from the first on and up to one that has no room; tells how many."""

    def close(self) -> None:
        """Take no more records."""

    def packed(self) -> bytearray:
        """Close, and give all: the same bytes each time, which are the caller's."""
