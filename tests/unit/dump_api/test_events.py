"""The events of a dump, as a client follows them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from databus_core.manifest import Manifest, State
from databus_dump_api import events
from databus_dump_api.problems import StorageUnavailable


class Dumps:
    """What is found at each look: a manifest, or an error."""

    def __init__(self, *found: State | Exception) -> None:
        self._found = iter(found)

    async def get(self, dump: str) -> Manifest:
        found = next(self._found)
        if isinstance(found, Exception):
            raise found
        return Manifest(id=dump, pipeline="shop", state=found, created=datetime(2026, 11, 27, tzinfo=UTC))

    async def with_progress(self, manifest: Manifest) -> Manifest:
        return manifest


async def test_an_outage_of_the_storage_does_not_end_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the event `end`, clients would take the dump for deleted."""
    monkeypatch.setattr(events, "_PAUSE_SECONDS", 0)
    away = StorageUnavailable("it is away")
    dumps: Any = Dumps(State.PENDING, away, State.RUNNING, State.RUNNING, away, State.COMPLETE)
    found = [event.split(b"\n")[0] async for event in events.events(dumps, "dump-1")]
    assert found == [b"event: progress", b"event: progress", b"event: end"]
