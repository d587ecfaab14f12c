"""Makes the records of row changes: inserts, updates, deletes and their tombstones, and updates that change the key."""

from collections.abc import Sequence

from databus_core.events import Action, Row
from databus_messages.formats.base import Change, KeyValueRecords, Record
from databus_messages.formats.debezium.envelope import EnvelopeEncoder, EventContext
from databus_messages.formats.debezium.table_encoder import TableEncoder

_NEW_KEY, _OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


class RowRecords:
    """Encodes the records of rows events."""

    def __init__(self, envelope: EnvelopeEncoder, *, tombstones: bool) -> None:
        self._envelope = envelope
        self._tombstones = tombstones

    def of(
        self, table: TableEncoder, context: EventContext, change: Change, blocks: Sequence[bytes] | None
    ) -> KeyValueRecords | list[Record]:
        """Encode the records of a change; `blocks` are its transaction blocks, None if these are not enabled."""
        numbers = [ordinal - change.first for ordinal in change.ordinals]
        if change.action is Action.UPDATE:
            return self._updates(table, context, change.rows, numbers, blocks)
        operation = "c" if change.action is Action.INSERT else "d"
        values = self._envelope.values(table.images, operation, context, change.rows, numbers, blocks)
        keys = table.keys(change.rows)
        if change.action is Action.INSERT or not (self._tombstones and table.has_key):
            return KeyValueRecords(keys, values)
        keys_twice = [key for key in keys for _ in range(2)]
        return KeyValueRecords(keys_twice, [each for value in values for each in (value, None)])

    def _updates(
        self,
        table: TableEncoder,
        context: EventContext,
        rows: Sequence[Row],
        numbers: Sequence[int],
        blocks: Sequence[bytes] | None,
    ) -> KeyValueRecords | list[Record]:
        keys = table.keys(rows)
        old_keys, new_keys = keys[::2], keys[1::2]
        if old_keys == new_keys:
            return KeyValueRecords(new_keys, self._envelope.values(table.images, "u", context, rows, numbers, blocks))
        if len(numbers) > 1:  # encode one update at a time: some of them may keep their key
            singles = (
                (rows[2 * index : 2 * index + 2], numbers[index : index + 1], blocks and blocks[index : index + 1])
                for index in range(len(numbers))
            )
            return [
                record._replace(row=index)
                for index, single in enumerate(singles)
                for record in self._updates(table, context, *single)
            ]
        (old_key,), (new_key,) = old_keys, new_keys
        (deleted,) = self._envelope.values(table.images, "d", context, rows[:1], numbers, blocks)
        (created,) = self._envelope.values(table.images, "c", context, rows[1:], numbers, blocks)
        to_new_key = [(_NEW_KEY, new_key or b"")]
        tombstone = [Record(old_key, None, to_new_key)] if self._tombstones and table.has_key else []
        return [
            Record(old_key, deleted, to_new_key),
            *tombstone,
            Record(new_key, created, [(_OLD_KEY, old_key or b"")]),
        ]
