"""Publishes the ordinary transactions of an entry of the pipe, without Python objects for their events."""

from collections.abc import Callable
from typing import Any, final

from databus_wire.kafka_records import RecordPacker
from databus_wire.rows_writer import RowsWriter

@final
class EntryWalk:
    """A walk through an entry: a msgpack array of events (see databus_core.events). Raises MalformedEvents."""

    #: ordinal of the last transaction that was published
    transaction: int
    #: its commit time, in µs since the epoch
    time_us: int
    #: offset at which it ends
    end: int

    def __init__(self, payload: bytes) -> None: ...
    @property
    def done(self) -> bool:
        """Whether no events are left."""

    @property
    def file(self) -> str:
        """The binlog file in which the last transaction that was published ends."""

    @property
    def full(self) -> Any:
        """The partition whose batch has no room for the transaction at which `publish` stopped; None: all have."""

    def publish(
        self,
        writers: dict[bytes, tuple[RowsWriter, ...] | None],
        find: Callable[[bytes], None],
        open_batch: Callable[[Any], RecordPacker | None],
        after: int,
        now_ns: int,
    ) -> int:
        """Publish the ordinary transactions that come next. Return how many.

        It stops at a transaction that is not ordinary, or for which a batch has no room (`full`).

        writers: by the fingerprint of a table, a writer for each of its routes; None: its rows are not ordinary.
        find: called with a fingerprint that `writers` lacks; may add it.
        open_batch: returns the open batch of a writer's partition; None: there can be none.
        after: ordinal of the transaction before.
        now_ns: time of encoding, in ns since the epoch.

        Raises what a writer raises; then the transactions before that one are published, and nothing of it is.
        """

    def take_executed(self) -> list[str]:
        """Return the GTIDs of what was published since the last call, as GTID sets to be merged in this order."""

    def take_group(self) -> bytes:
        """Take the next events, at least one, up to the next Begin, as a msgpack array; empty if `done`."""
