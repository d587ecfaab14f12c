"""Spans of the entries that the reader appends, used only if OpenTelemetry's variables name a collector."""

from collections.abc import Coroutine, Iterable, Iterator
from time import time_ns
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis

from databus_core.entry_contents import describe_entry
from databus_core.events import Event, decode_events
from databus_core.pipe import ReaderEnd
from databus_core.runtime import Health
from databus_reader.entries import EntryWriter

if TYPE_CHECKING:
    from databus_core.spans import Spans

_ARRAY32 = b"\xdd"  # msgpack: an array whose length follows in four bytes


class TracedEnd(ReaderEnd):
    """The reader's end of the pipe, with a span for each entry: from its first event until Redis has stored it."""

    def __init__(self, redis: Redis, pipeline: str, spans: "Spans") -> None:
        super().__init__(redis, pipeline)
        self._spans = spans
        #: when the first event of the next entry was taken, in ns since the epoch
        self.begun_ns = 0
        #: the events of the next entry
        self.events: list[Event] = []

    async def append(self, payload: bytes, read_to_us: int = 0) -> int:
        """Append the next entry, as `ReaderEnd.append` does."""
        events, self.events = self.events, []
        trace = self._spans.trace(self._token, self._claim, self._number)
        if trace is None:
            return await super().append(payload, read_to_us)
        attributes = {"messaging.message.body.size": len(payload), **describe_entry(events)}
        with self._spans.measured(trace, "read", self.begun_ns, attributes):
            return await super().append(payload, read_to_us)


class TracedEntries(EntryWriter):
    """Notes when the first event of each entry is taken, and keeps its events until it is appended."""

    def __init__(self, pipe: TracedEnd, backlog_limit: int, health: Health) -> None:
        super().__init__(pipe, backlog_limit, health)
        self._traced = pipe
        #: when `write` was called, and when it was called with the first event collected now, in ns since the epoch
        self._taken_ns = self._begun_ns = 0
        self._kept: list[Event] = []

    async def write(self, events: Iterable[Event]) -> None:
        """Collect events, as `EntryWriter.write` does."""
        self._taken_ns = time_ns()
        if not self._events:
            self._begun_ns = self._taken_ns
        await super().write(self._keeping(events))

    async def write_encoded(self, encoded: bytes, events: int) -> None:
        """Collect events, as `EntryWriter.write_encoded` does."""
        self._taken_ns = time_ns()
        if not self._events:
            self._begun_ns = self._taken_ns
        self._kept += decode_events(b"".join((_ARRAY32, events.to_bytes(4, "big"), encoded)))
        await super().write_encoded(encoded, events)

    def _keeping(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            self._kept.append(event)
            yield event

    def _append(self, payload: bytes, read_to_us: int) -> Coroutine[Any, Any, None]:
        """Called after the append before has ended, and before another event is collected."""
        self._traced.begun_ns, self._begun_ns = self._begun_ns, self._taken_ns
        self._traced.events, self._kept = self._kept, []
        return super()._append(payload, read_to_us)


def make_pipe(redis: Redis, pipeline: str, spans: "Spans | None") -> ReaderEnd:
    """Make the reader's end of the pipe."""
    return TracedEnd(redis, pipeline, spans) if spans else ReaderEnd(redis, pipeline)


def make_entries(pipe: ReaderEnd, backlog_limit: int, health: Health) -> EntryWriter:
    """Make the writer that appends to a pipe of `make_pipe`."""
    if isinstance(pipe, TracedEnd):
        return TracedEntries(pipe, backlog_limit, health)
    return EntryWriter(pipe, backlog_limit, health)
