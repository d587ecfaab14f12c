"""A summary of the files' content, in a few lines."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from databus_binlog import AnyEvent, Gtid, Query, Rows, TableMap

_SHOWN = 10


class Summary:
    """Counts events; `str(summary)` is the text to print."""

    def __init__(self) -> None:
        #: bytes read
        self.size = 0
        self._events: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._tables: Counter[str] = Counter()
        self._begins = 0
        self._first: AnyEvent | None = None
        self._last: AnyEvent | None = None

    def add(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> None:
        """Count an event."""
        self._first = self._first or event
        self._last = event
        self._events[type(event).__name__] += 1
        match event:
            case Rows():
                rows = event.count // 2 if event.action == "update" else event.count
                table = tables[event.table]
                self._rows[event.action] += rows
                self._tables[table.full_name] += rows
            case Query() if event.query == b"BEGIN":
                self._begins += 1

    def __bool__(self) -> bool:
        return self._first is not None

    def __str__(self) -> str:
        # MySQL without GTIDs marks transactions only by BEGIN, MariaDB by a GTID. DDL with a GTID counts, too.
        transactions = max(self._events[Gtid.__name__], self._begins)
        lines = [
            ("bytes", f"{self.size:,}"),
            ("events", f"{self._events.total():,}{_parts(self._events)}"),
            ("transactions", f"{transactions:,}"),
            ("rows", f"{self._rows.total():,}{_parts(self._rows)}"),
            ("tables", f"{len(self._tables):,}{_parts(self._tables)}"),
        ]
        if self._first and self._last:
            first, last = self._first, self._last
            lines.append(("position", f"{first.file}:{first.start} … {last.file}:{last.end}"))
            lines.append(("time", f"{_utc(first.time)} … {_utc(last.time)} UTC"))
        return "".join(f"{name:12}  {text}\n" for name, text in lines)


def _parts(counts: Counter[str]) -> str:
    """Format the largest counts, and the number of the others."""
    if not counts:
        return ""
    rest = [f"{len(counts) - _SHOWN:,} more"] if len(counts) > _SHOWN else []
    return ": " + ", ".join([f"{name} {count:,}" for name, count in counts.most_common(_SHOWN)] + rest)


def _utc(time: int) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}"
