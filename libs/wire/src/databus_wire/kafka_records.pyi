"""Packs the records of Kafka's record batches, version 2."""

from collections.abc import Sequence

class RecordPacker:
    """Packs the records of a batch in order."""

    #: the largest size of the batch in bytes, header included
    limit: int
    #: time of the first record, in ms since the epoch
    first_ms: int
    #: the latest time of any record, in ms since the epoch
    last_ms: int

    def __init__(self, header: int, limit: int, sequence: str = "") -> None:
        """Reserve `header` bytes for the batch's header.

        `sequence` is the name of the header that `extend` adds.
        """

    def append(
        self, time_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """Pack a record; return False if the batch is closed or would exceed its limit.

        The first record may exceed the limit.
        """

    def extend(
        self,
        time_ms: int,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        first: int = 0,
        transaction: int = 0,
        rows: Sequence[int] | None = None,
    ) -> int:
        """Pack records from index `first` on; return how many were packed before the batch is closed or has no room.

        Other than with `append`, the first record has to have room, too.

        With `rows`, the ordinals of one or more rows in a transaction, each record has one header: the `sequence_text`
        of its first row. Each row has as many records as the others, or each record as many rows.

        Raises ValueError unless there are as many keys as values, or if `first` is negative or `rows` is empty;
        OverflowError as `sequence_text` does.
        """

    def size(self) -> int:
        """Return the size of the batch in bytes, header included."""

    def record_count(self) -> int:
        """Return the number of records."""

    def close(self) -> None:
        """Close the batch: it accepts no more records."""

    def closed(self) -> bool:
        """Return whether the batch is closed."""

    def packed(self) -> bytearray:
        """Close the batch, and return the reserved header and the records.

        Each call returns the same bytearray, so that the caller can write the header into it.
        """

def sequence_text(transaction: int, row: int) -> bytes:
    """Return two ordinals as text whose order is theirs: 16 digits, a hyphen and 10 digits.

    Raises OverflowError for ordinals that are negative or have more digits.
    """
