"""Where a change stands in its source transaction, and the topic that tells where transactions begin and end."""

from dataclasses import dataclass, field

from databus.events import Begin
from databus_messages.formats.base import Change
from databus_messages.formats.debezium.schemas import INT64, STRING, array, struct

KEY = struct("io.debezium.connector.common.TransactionMetadataKey", {"id": STRING})
_COLLECTION = struct("event.collection", {"data_collection": STRING, "event_count": INT64}).maybe()
VALUE = struct(
    "io.debezium.connector.common.TransactionMetadataValue",
    {
        "status": STRING,
        "id": STRING,
        "event_count": INT64.maybe(),
        "data_collections": array(_COLLECTION).maybe(),
        "ts_ms": INT64,
    },
)


@dataclass(slots=True)
class _Collection:
    """Counts for one table."""

    #: ordinal of the first row of its last event, and the rows of its events before that one
    event: int = -1
    before: int = 0
    #: rows seen of its last event
    rows: int = 0
    #: changes that were told
    told: int = 0


@dataclass(slots=True)
class Transaction:
    """A transaction with changes."""

    begin: Begin
    id: str
    _collections: dict[str, _Collection] = field(default_factory=dict)

    @classmethod
    def of(cls, change: Change) -> "Transaction":
        """Begin the transaction of its first change."""
        begin = change.begin
        return cls(begin, begin.gtid or f"file={begin.file},pos={change.start}")

    def place(self, change: Change) -> int:
        """Give the number of rows of the table in the events before the change's.

        The change may be a part of its event: other rows went to other partitions.
        """
        collection = self._collections.setdefault(_name(change), _Collection())
        if change.first != collection.event:
            collection.before += collection.rows
            collection.event, collection.rows = change.first, 0
        collection.rows = max(collection.rows, change.ordinals[-1] - change.first + 1)
        return collection.before

    def count(self, change: Change, records: int) -> None:
        """Count the records that were made of a change: another key makes two."""
        self._collections[_name(change)].told += records

    def began(self) -> dict[str, object]:
        """Give the message of its begin."""
        return self._message("BEGIN", None, None)

    def ended(self) -> dict[str, object]:
        """Give the message of its end."""
        counts = [{"data_collection": name, "event_count": of.told} for name, of in self._collections.items()]
        return self._message("END", sum(of.told for of in self._collections.values()), counts)

    def _message(
        self, status: str, count: int | None, collections: list[dict[str, object]] | None
    ) -> dict[str, object]:
        time = self.begin.time_us // 1000
        return {"status": status, "id": self.id, "event_count": count, "data_collections": collections, "ts_ms": time}


def _name(change: Change) -> str:
    return f"{change.table.schema}.{change.table.name}"
