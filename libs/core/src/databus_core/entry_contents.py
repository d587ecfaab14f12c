"""What an entry of the pipe contains, as attributes of its span: numbers and positions, nothing of a row."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from databus_core.events import Action, Begin, Commit, Event, Heartbeat, RowsEvent, SnapshotEvent

_count = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


def describe_entry(events: Sequence[Event]) -> dict[str, str | int]:
    """Describe an entry; what does not apply is left out.

    A transaction may be larger than an entry: it is counted where it ends, and its rows in the entries that have them.
    """
    begins = [event for event in events if isinstance(event, Begin)]
    found: dict[str, str | int] = {
        "databus.transactions": sum(isinstance(event, Commit) for event in events),
        "databus.rows": sum(_rows(event) for event in events if isinstance(event, RowsEvent | SnapshotEvent)),
    }
    if begins:
        found |= {
            "databus.transaction.first": begins[0].transaction,
            "databus.transaction.last": begins[-1].transaction,
        }
        committed = datetime.fromtimestamp(begins[-1].time_us / 1e6, UTC)
        found["databus.committed_at"] = committed.isoformat(timespec="microseconds")
        if gtid := begins[-1].gtid:
            found["databus.gtid"] = gtid
    if ends := [event for event in events if isinstance(event, Commit | Heartbeat)]:
        found["databus.position"] = f"{ends[-1].file}:{ends[-1].end}"
    return found


def _rows(event: RowsEvent | SnapshotEvent) -> int:
    images = len(_count(event.rows))
    return images // 2 if isinstance(event, RowsEvent) and event.action is Action.UPDATE else images
