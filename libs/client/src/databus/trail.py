"""What was delivered, in order, so that a bookmark can be made at any change.

The trail is a chain of segments. A segment is kept only as long as the program keeps one of its changes.
"""

from collections.abc import Mapping

from aiokafka import TopicPartition

from databus.bookmark import Bookmark, Progress
from databus.origin import Origin
from databus.stores import Store

#: records in a segment, at most
_SIZE = 1000


class _Segment:
    """Records that were delivered after a bookmark."""

    def __init__(self, base: Bookmark) -> None:
        self._base = base
        self.origins: list[Origin] = []
        #: the bookmark after some of the records, because programs ask for one after the other
        self._progress, self._count = Progress(base), 0

    def bookmark(self, index: int, rows: int | None) -> Bookmark:
        """Return what is done once a record is, or its first rows."""
        if self._count > index:
            self._progress, self._count = Progress(self._base), 0
        for origin in self.origins[self._count : index]:
            self._progress.done(origin)
        self._count = index
        last = self._progress if rows is None else Progress(self._progress.bookmark())
        last.done(self.origins[index], rows)
        self._count += rows is None
        return last.bookmark()


class Mark:
    """The place of a record in the trail."""

    __slots__ = ("_index", "_segment", "_size", "_store")

    def __init__(self, segment: _Segment, index: int, size: int, store: Store | None) -> None:
        self._segment = segment
        self._index = index
        #: changes of the record
        self._size = size
        self._store = store

    def bookmark(self, change: int) -> Bookmark:
        """Return what is done once the record's change with this number, from 0, is."""
        done = change + 1
        return self._segment.bookmark(self._index, None if done == self._size else done)

    async def save(self, change: int) -> None:
        """Save that bookmark."""
        if self._store:
            await self._store.save(self.bookmark(change))


class Trail:
    """What was delivered."""

    def __init__(self, bookmark: Bookmark, store: Store | None = None) -> None:
        self._store = store
        self._progress = Progress(bookmark)
        self._segment = _Segment(bookmark)

    def deliver(self, origin: Origin, size: int) -> Mark:
        """Note that a record with so many changes is delivered."""
        if len(self._segment.origins) == _SIZE:
            self._segment = _Segment(self._progress.bookmark())
        self._segment.origins.append(origin)
        self._progress.done(origin)
        return Mark(self._segment, len(self._segment.origins) - 1, size, self._store)

    def end_snapshot(self) -> None:
        """Note that all rows of the dump were delivered."""
        self._progress.loaded()
        self._segment = _Segment(self._progress.bookmark())

    def pass_by(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that all records before these offsets were delivered, or do not matter."""
        for each, offset in offsets.items():
            self._progress.passed(each.topic, each.partition, offset)
        self._segment = _Segment(self._progress.bookmark())

    def bookmark(self) -> Bookmark:
        """Return what is done once everything that was delivered is."""
        return self._progress.bookmark()
