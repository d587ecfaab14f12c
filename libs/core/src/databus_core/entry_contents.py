"""What an entry of the pipe contains, as attributes of its span: numbers and positions, nothing of a row."""

from collections.abc import Iterable
from datetime import UTC, datetime

from databus_core.events import Action, Begin, Commit, Event, Heartbeat, RowsEvent, SnapshotEvent

#: msgpack: an array whose length follows in two or in four bytes; a shorter one has it in the first byte
_ARRAY16, _ARRAY32 = 0xDC, 0xDD


def describe_entry(events: Iterable[Event]) -> dict[str, str | int]:
    """Describe an entry; what does not apply is left out.

    A transaction may be larger than an entry: it is counted where it ends, and its rows in the entries that have them.
    """
    first: Begin | None = None
    last: Begin | None = None
    end: Commit | Heartbeat | None = None
    transactions = rows = 0
    for event in events:  # isinstance takes several times as long, for a Struct
        if type(event) is RowsEvent:
            images = _length(event.rows)
            rows += images // 2 if event.action is Action.UPDATE else images
        elif type(event) is SnapshotEvent:
            rows += _length(event.rows)
        elif type(event) is Begin:
            first, last = first or event, event
        elif type(event) is Commit:
            transactions += 1
            end = event
        elif type(event) is Heartbeat:
            end = event
    found: dict[str, str | int] = {"databus.transactions": transactions, "databus.rows": rows}
    if first and last:
        committed = datetime.fromtimestamp(last.time_us / 1e6, UTC)
        found |= {
            "databus.transaction.first": first.transaction,
            "databus.transaction.last": last.transaction,
            "databus.committed_at": committed.isoformat(timespec="microseconds"),
        }
        if last.gtid:
            found["databus.gtid"] = last.gtid
    if end:
        found["databus.position"] = f"{end.file}:{end.end}"
    return found


def _length(array: bytes) -> int:
    """Return the length of a msgpack array, which its header has."""
    view = memoryview(array)
    if view[0] == _ARRAY16:
        return int.from_bytes(view[1:3], "big")
    if view[0] == _ARRAY32:
        return int.from_bytes(view[1:5], "big")
    return view[0] & 15
