"""The spans of the entries that a reader appends: when they begin, and what they have."""

import secrets
from typing import Any

import msgspec
import pytest

from databus_core.errors import GenerationLost
from databus_core.events import Action, RowsEvent, encode_events
from databus_core.runtime import Health
from databus_core.spans import Spans
from databus_reader.entries import ENTRY_BYTES
from databus_reader.tracing import TracedEnd, make_entries

#: an entry has 30 of these: it is complete with a multiple of 15 events
ROWS = msgspec.Raw(msgspec.msgpack.encode([[secrets.token_bytes(ENTRY_BYTES // 20)]]))
EVENT = RowsEvent(table="t", action=Action.INSERT, row=0, start=4, end=104, rows=ROWS)


class RecordedSpans(Spans):
    """Keeps what is added: the number of the entry, when it began, its rows, and the error."""

    def __init__(self) -> None:
        self.added: list[tuple[int, int, int, Exception | None]] = []

    def trace(self, generation: bytes, claim: bytes, number: int) -> Any:
        return number

    def add(self, trace, stage, begun_ns, ended_ns, attributes, error=None) -> None:
        assert begun_ns <= ended_ns
        self.added.append((trace, begun_ns, attributes["databus.rows"], error))


class Pipe(TracedEnd):
    """A pipe without Redis."""

    lost = False

    async def _call(self, function: str, *args: object) -> object:
        if self.lost:
            raise GenerationLost("it is lost")
        return 0


async def test_an_entry_begins_when_its_first_event_is_taken() -> None:
    redis: Any = None
    spans = RecordedSpans()
    pipe = Pipe(redis, "shop", spans)
    async with make_entries(pipe, 1 << 20, Health()) as entries:
        await entries.write([EVENT] * 35)
        await entries.write([EVENT])
        await entries.flush()
        await entries.write([EVENT])
        await entries.flush()
        await entries.wait_until_published()
        pipe.lost = True
        await entries.write([EVENT])
        await entries.flush()
        with pytest.raises(GenerationLost):
            await entries.wait_until_published()
    assert [(number, rows, bool(error)) for number, _, rows, error in spans.added] == [
        (0, 30, False),
        (1, 6, False),
        (2, 1, False),
        (3, 1, True),
    ]
    begun = [begun_ns for _, begun_ns, *_ in spans.added]
    assert begun[0] == begun[1] < begun[2] < begun[3]


async def test_events_that_come_in_msgpack_are_described_like_others() -> None:
    redis: Any = None
    spans = RecordedSpans()
    async with make_entries(Pipe(redis, "shop", spans), 1 << 20, Health()) as entries:
        await entries.write([EVENT])
        await entries.write_encoded(encode_events([EVENT] * 2)[1:], 2)
        await entries.flush()
        await entries.wait_until_published()
    assert [rows for _, _, rows, _ in spans.added] == [3]
