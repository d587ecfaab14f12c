"""Rows become records: inserts, updates, deletes with their tombstones, and what another key makes of an update."""

from collections.abc import Sequence

from databus.events import Action, Row
from databus_messages.formats.base import Change, KeyValueRecords, Record
from databus_messages.formats.debezium.envelope import EnvelopeEncoder, Event
from databus_messages.formats.debezium.tables import TablePlan

_NEW_KEY, _OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


class RowRecords:
    """Makes the records of rows events."""

    def __init__(self, envelope: EnvelopeEncoder, *, tombstones: bool) -> None:
        self._envelope = envelope
        self._tombstones = tombstones

    def of(self, plan: TablePlan, event: Event, change: Change, blocks: Sequence[bytes] | None) -> Sequence[Record]:
        """Make the records of a change; `blocks` are its places in the transaction, if they are told."""
        numbers = [place - change.first for place in change.ordinals]
        if change.action is Action.UPDATE:
            return self._updates(plan, event, change.rows, numbers, blocks)
        operation = "c" if change.action is Action.INSERT else "d"
        values = self._envelope.values(plan.images, operation, event, change.rows, numbers, blocks)
        keys = plan.keys(change.rows)
        if change.action is Action.INSERT or not (self._tombstones and plan.keyed):
            return KeyValueRecords(keys, values)
        twice = [key for key in keys for _ in range(2)]
        return KeyValueRecords(twice, [each for value in values for each in (value, None)])

    def _updates(
        self,
        plan: TablePlan,
        event: Event,
        rows: Sequence[Row],
        numbers: Sequence[int],
        blocks: Sequence[bytes] | None,
    ) -> Sequence[Record]:
        keys = plan.keys(rows)
        old_keys, new_keys = keys[::2], keys[1::2]
        if old_keys == new_keys:
            return KeyValueRecords(new_keys, self._envelope.values(plan.images, "u", event, rows, numbers, blocks))
        if len(numbers) > 1:  # one at a time, some may keep their key
            singles = (
                (rows[2 * place : 2 * place + 2], numbers[place : place + 1], blocks and blocks[place : place + 1])
                for place in range(len(numbers))
            )
            return [record for single in singles for record in self._updates(plan, event, *single)]
        (old_key,), (new_key,) = old_keys, new_keys
        (deleted,) = self._envelope.values(plan.images, "d", event, rows[:1], numbers, blocks)
        (created,) = self._envelope.values(plan.images, "c", event, rows[1:], numbers, blocks)
        tombstone = [Record(old_key, None)] if self._tombstones and plan.keyed else []
        return [
            Record(old_key, deleted, [(_NEW_KEY, new_key or b"")]),
            *tombstone,
            Record(new_key, created, [(_OLD_KEY, old_key or b"")]),
        ]
