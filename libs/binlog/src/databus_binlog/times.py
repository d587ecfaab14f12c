"""Times as text: ISO 8601 with a time zone. As numbers, they are µs since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(time_us: int) -> str:
    """Return a time as ISO 8601 in UTC, with microseconds only if there are any."""
    return (_EPOCH + timedelta(microseconds=time_us)).isoformat().replace("+00:00", "Z")


def parse_time(text: str) -> int:
    """Parse a time. Raises ValueError if it is not ISO 8601, or has no time zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text[:200]!r} is not a time; write it as 2026-11-20T10:00:00Z") from error
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; append Z for UTC, or an offset such as +01:00")
    return (time - _EPOCH) // timedelta(microseconds=1)
