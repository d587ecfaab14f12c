"""Transaction metadata: a change's order in its source transaction, and the BEGIN and END messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from databus_core.events import Begin
from databus_messages.formats.base import Change
from databus_messages.formats.debezium.schemas import INT64, STRING, array, struct

KEY = struct("io.debezium.connector.common.TransactionMetadataKey", {"id": STRING})
_COLLECTION = struct("event.collection", {"data_collection": STRING, "event_count": INT64}).nullable()
VALUE = struct(
    "io.debezium.connector.common.TransactionMetadataValue",
    {
        "status": STRING,
        "id": STRING,
        "event_count": INT64.nullable(),
        "data_collections": array(_COLLECTION).nullable(),
        "ts_ms": INT64,
    },
)


@dataclass(slots=True)
class _Collection:
    """Counts for one table in a transaction."""

    #: ordinal of the first row of the table's latest event
    event: int = -1
    #: number of rows of the latest event, up to the last row that was encoded
    rows: int = 0
    #: number of the table's rows before the latest event
    rows_before: int = 0
    #: number of records, without tombstones
    records: int = 0


@dataclass(slots=True)
class TransactionMetadata:
    """The metadata of a transaction with row changes."""

    begin: Begin
    id: str
    #: whether the BEGIN message was encoded
    has_begin: bool = False
    _collections: dict[str, _Collection] = field(default_factory=dict)

    @classmethod
    def of(cls, change: Change) -> "TransactionMetadata":
        """Make the metadata of a transaction from its first change."""
        begin = change.begin
        return cls(begin, transaction_id(begin.gtid, begin.file, change.start))

    def rows_before(self, change: Change) -> int:
        """Return the number of the table's rows in the transaction's earlier events.

        Rows of the same event in an earlier change, for another partition, are not counted.
        """
        collection = self._collections.setdefault(change.table.full_name, _Collection())
        if change.first != collection.event:
            collection.rows_before += collection.rows
            collection.event, collection.rows = change.first, 0
        collection.rows = max(collection.rows, change.ordinals[-1] - change.first + 1)
        return collection.rows_before

    def count(self, change: Change, records: int) -> None:
        """Count the records of a change, without tombstones; an update that changes the key has two."""
        self._collections[change.table.full_name].records += records

    def begin_message(self) -> dict[str, object]:
        """Return the BEGIN message."""
        return begin_message(self.id, self.begin.time_us)

    def end_message(self) -> dict[str, object]:
        """Return the END message."""
        records = {name: collection.records for name, collection in self._collections.items()}
        return end_message(self.id, self.begin.time_us, records)


def transaction_id(gtid: str, file: str, start: int) -> str:
    """Return the id of a transaction whose first row change is at a place in the binlog."""
    return gtid or f"file={file},pos={start}"


def begin_message(identity: str, time_us: int) -> dict[str, object]:
    """Return the BEGIN message of a transaction."""
    return _message("BEGIN", identity, None, None, time_us)


def end_message(identity: str, time_us: int, records: Mapping[str, int]) -> dict[str, object]:
    """Return the END message of a transaction, from the numbers of records by table."""
    counts = [{"data_collection": name, "event_count": count} for name, count in records.items()]
    return _message("END", identity, sum(records.values()), counts, time_us)


def _message(
    status: str, identity: str, count: int | None, collections: list[dict[str, object]] | None, time_us: int
) -> dict[str, object]:
    ms = time_us // 1000
    return {"status": status, "id": identity, "event_count": count, "data_collections": collections, "ts_ms": ms}
