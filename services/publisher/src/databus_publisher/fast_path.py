"""Publishes ordinary transactions with compiled code, straight from an entry into Kafka's batches (ADR 39).

The Python path is the specification: whatever the compiled code leaves, or cannot encode, goes through `Publication`.
"""

import time
from contextlib import suppress

from databus_core.errors import PoisonError
from databus_core.progress_tracker import ProgressTracker
from databus_core.pure import is_pure
from databus_messages.encoder import EventEncoder
from databus_publisher.producer import Producer
from databus_wire.entry_walk import EntryWalk
from databus_wire.errors import MalformedEvents
from databus_wire.rows_writer import RowsWriter


class FastPath:
    """Publishes the ordinary transactions of one generation."""

    def __init__(self, encoder: EventEncoder, producer: Producer, tracker: ProgressTracker) -> None:
        self._encoder = encoder
        self._producer = producer
        self._tracker = tracker
        #: whether no transaction takes it
        self.is_off = is_pure() or not encoder.has_fast_path
        #: fingerprint of a table → a writer for each of its routes; None: its rows are not ordinary
        self._writers: dict[bytes, tuple[RowsWriter, ...] | None] = {}

    async def publish(self, entry: EntryWalk) -> bool:
        """Publish the ordinary transactions that come next in an entry. Return whether there were any."""
        is_published = self._publish(entry)
        while entry.full is not None and await self._producer.make_room(entry.full):
            is_published = self._publish(entry) or is_published
        return is_published

    def _publish(self, entry: EntryWalk) -> bool:
        """Publish up to the first transaction that is not ordinary, or for which a batch has no room."""
        before = self._tracker.transaction
        try:
            # The Python path raises these again, with a cause, or reads what another version has written.
            with suppress(PoisonError, ValueError, LookupError, MalformedEvents):
                entry.publish(self._writers, self._find, self._producer.open_batch, before, time.time_ns())
        finally:  # after any error: a shutdown commits what was written, and the progress that it reaches
            is_published = entry.transaction != before
            if is_published:
                self._pass(entry)
        return is_published

    def _pass(self, entry: EntryWalk) -> None:
        executed = entry.take_executed()
        self._tracker.pass_transactions(entry.transaction, executed, entry.file, entry.end, entry.time_us)
        self._encoder.pass_transactions(entry.transaction)

    def _find(self, fingerprint: bytes) -> None:
        if (table := fingerprint.decode()) in self._encoder.routes:  # the table has had an event
            self._writers[fingerprint] = self._encoder.rows_writers(table)
