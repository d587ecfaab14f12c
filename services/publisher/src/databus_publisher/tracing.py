"""Spans of the entries that the publisher publishes, used only if OpenTelemetry's variables name a collector."""

from collections import deque
from time import time_ns
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis

from databus_core.pipe import Entry, PublisherEnd
from databus_core.progress import Progress
from databus_publisher.publication import Publication

if TYPE_CHECKING:
    from databus_core.spans import Spans, Trace

#: How many entries may wait for their commit: the first ones of a larger transaction get no span of it. All spans of a
#: commit are made at once; these take 30 ms, and OpenTelemetry's queue has room for twice as many.
_UNCOMMITTED = 1000


class TracedEnd(PublisherEnd):
    """The publisher's end of the pipe; notes when entries arrive."""

    def __init__(self, redis: Redis, pipeline: str, spans: "Spans") -> None:
        super().__init__(redis, pipeline)
        self.spans = spans
        #: number of each sampled entry that is not added yet → its trace, and when it arrived, in ns since the epoch
        self.arrived: dict[int, tuple[Trace, int]] = {}

    async def open(self, progress: Progress) -> None:
        """Open a new generation, as `PublisherEnd.open` does."""
        self.arrived.clear()
        await super().open(progress)

    async def take(self, *, count: int, block_ms: int | None) -> list[Entry]:
        """Take entries, as `PublisherEnd.take` does."""
        entries = await super().take(count=count, block_ms=block_ms)
        now = time_ns()
        for entry in entries:
            if trace := self.spans.trace(entry.token, entry.claim, entry.number):
                self.arrived[entry.number] = trace, now
        return entries


class TracedPublication(Publication):
    """Makes two spans of each entry: from its arrival until its records are sent, and of the commit that has them."""

    def __init__(self, pipe: TracedEnd, *arguments: Any) -> None:
        """`arguments` are those of `Publication`."""
        super().__init__(*arguments)
        self._arrived, self._spans = pipe.arrived, pipe.spans
        #: traces of entries that are not committed yet
        self._uncommitted: deque[Trace] = deque(maxlen=_UNCOMMITTED)
        #: number of commits that were started
        self._commits = 0
        #: when the last one began and ended, in ns since the epoch
        self._begun_ns = self._ended_ns = 0

    async def add(self, payload: bytes) -> None:
        """Publish an entry, as `Publication.add` does."""
        sampled = self._arrived.pop(self._added, None)
        if sampled is None:
            await super().add(payload)
            return
        trace, arrived_ns = sampled
        self._uncommitted.append(trace)
        commits = self._commits
        with self._spans.measured(trace, "publish", arrived_ns, {"messaging.message.body.size": len(payload)}):
            await super().add(payload)
        if self._commits != commits:  # one began inside of the entry, and may have ended: that of `End` has
            self._add_commits(self._committed_entries)

    async def start_commit(self) -> None:
        """Start a commit, as `Publication.start_commit` does."""
        await self.finish_commit()
        self._commits += 1
        self._begun_ns, self._ended_ns = time_ns(), 0
        try:
            await super().start_commit()
        except Exception as error:
            self._add_commits(self._started_entries, error)
            raise
        if self.committing:
            self.committing.add_done_callback(self._note_end)

    async def finish_commit(self) -> None:
        """Wait for a commit, as `Publication.finish_commit` does."""
        started = self._started
        try:
            await super().finish_commit()
        except Exception as error:
            self._add_commits(self._started_entries, error)
            raise
        if started:
            self._ended_ns = self._ended_ns or time_ns()
            self._add_commits(self._committed_entries)

    def _note_end(self, _: object) -> None:
        """Note when a commit ends: `finish_commit` may be called later."""
        self._ended_ns = time_ns()

    @property
    def _committed_entries(self) -> int:
        """Number of the first entries that are committed, with the one in which the last commit began if it is, too."""
        return min(self.published, self._started_entries + 1)

    def _add_commits(self, entries: int, error: Exception | None = None) -> None:
        """Add a span of the last commit to the trace of each of the first entries that has none yet."""
        progress = self._started if error else self.committed
        attributes = {"databus.transaction.last": progress.transaction} if progress else {}
        while self._uncommitted and self._uncommitted[0].entry < entries:
            trace = self._uncommitted.popleft()
            self._spans.add(trace, "commit", self._begun_ns, self._ended_ns or time_ns(), attributes, error)


def make_pipe(redis: Redis, pipeline: str, spans: "Spans | None") -> PublisherEnd:
    """Make the publisher's end of the pipe."""
    return TracedEnd(redis, pipeline, spans) if spans else PublisherEnd(redis, pipeline)
