"""What was delivered, in order, so that a bookmark can be made at any change.

The trail is a chain of segments. A segment is kept only as long as the program keeps one of its changes.
"""

import time
from collections.abc import Mapping, Sequence

import msgspec
from aiokafka import TopicPartition

from databus.bookmark import Bookmark, BookmarkBuilder, Place
from databus.origin import Origin
from databus.stores import Store

#: records in a segment, at most
_SIZE = 1000
#: seconds between two bookmarks that are saved although no change came
_IDLE_SECONDS = 10.0


class _Segment:
    """Records that were delivered after a bookmark."""

    def __init__(self, base: Bookmark) -> None:
        self._base = base
        self.origins: list[Origin] = []
        #: the bookmark after some of the records, because programs ask for one after the other
        self._builder, self._count = BookmarkBuilder(base), 0

    def before(self, index: int) -> Bookmark:
        """Return what is done before a record is."""
        return self.bookmark(index - 1, None) if index else self._base

    def bookmark(self, index: int, rows: int | None) -> Bookmark:
        """Return what is done once a record is, or its first rows."""
        if self._count > index:
            self._builder, self._count = BookmarkBuilder(self._base), 0
        for origin in self.origins[self._count : index]:
            self._builder.done(origin)
        self._count = index
        last = self._builder if rows is None else BookmarkBuilder(self._builder.bookmark())
        last.done(self.origins[index], rows)
        self._count += rows is None
        return last.bookmark()


class Mark:
    """The place of a record in the trail."""

    __slots__ = ("_ahead", "_before", "_index", "_number", "_segment", "_size", "_trail")

    def __init__(self, trail: "Trail", segment: _Segment, number: int, size: int) -> None:
        self._trail = trail
        self._segment = segment
        self._index = len(segment.origins) - 1
        #: number of the record in the trail
        self._number = number
        #: changes of the record
        self._size = size
        #: the record that the program gets after this one, although it comes before it in the trail
        self._before: Mark | None = None
        #: later records of the trail that the program got before this one
        self._ahead: tuple[Place, ...] = ()

    def move_ahead_of(self, marks: Sequence["Mark"]) -> None:
        """Note that the program gets this record before those of `marks`, the latest of the trail."""
        origin = self._segment.origins[self._index]
        self._before, self._ahead = marks[0], marks[0]._ahead
        if origin.through:  # more changes of the record follow: together with the last ones it is done
            return
        for each in dict.fromkeys(marks):
            each._ahead = (*each._ahead, Place(origin.topic, origin.partition, origin.offset))

    def bookmark(self, change: int) -> Bookmark:
        """Return what is done once the record's change with this number, from 0, is."""
        done, ahead = change + 1, self._ahead
        if self._before:  # as long as it is not done completely, it is not done
            is_done = done == self._size and not self._segment.origins[self._index].through
            ahead = self._before._ahead[: len(ahead) + is_done]
            bookmark = self._before._segment.before(self._before._index)
        else:
            bookmark = self._segment.bookmark(self._index, None if done == self._size else done)
        return msgspec.structs.replace(bookmark, ahead=[*bookmark.ahead, *ahead]) if ahead else bookmark

    async def save(self, change: int) -> None:
        """Save that bookmark."""
        if self._before:
            number = self._before._number - 1
        else:
            number = self._number if change + 1 == self._size else self._number - 1
        await self._trail.save(self.bookmark(change), number)


class Trail:
    """What was delivered, and what of it is saved."""

    def __init__(self, bookmark: Bookmark, store: Store | None = None) -> None:
        self._store = store
        self._builder = BookmarkBuilder(bookmark)
        self._segment = _Segment(bookmark)
        #: numbers of the last record that was delivered, and of the last one that the store has
        self._delivered = self._saved = 0
        self._saved_at = time.monotonic()

    def deliver(self, origin: Origin, size: int) -> Mark:
        """Note that a record with so many changes is delivered."""
        self._delivered += 1
        self._append(origin)
        return Mark(self, self._segment, self._delivered, size)

    def leave_out(self, origin: Origin) -> None:
        """Note that a record is done that has nothing to deliver."""
        self._append(origin)

    def _append(self, origin: Origin) -> None:
        if len(self._segment.origins) == _SIZE:
            self._segment = _Segment(self._builder.bookmark())
        self._segment.origins.append(origin)
        self._builder.done(origin)

    def end_snapshot(self) -> None:
        """Note that all rows of the dump were delivered."""
        self._builder.loaded()
        self._segment = _Segment(self._builder.bookmark())
        self._saved_at = 0.0

    def pass_by(self, offsets: Mapping[TopicPartition, int], gone: Mapping[str, int]) -> None:
        """Note that all records before these offsets were delivered or do not matter, and that topics are gone."""
        for each, offset in offsets.items():
            self._builder.passed(each.topic, each.partition, offset)
        self._builder.gone(gone)
        self._segment = _Segment(self._builder.bookmark())

    def bookmark(self) -> Bookmark:
        """Return what is done once everything that was delivered is."""
        return self._builder.bookmark()

    async def save(self, bookmark: Bookmark, number: int) -> None:
        """Save a bookmark after the record with this number. Without a store it does nothing."""
        if self._store:
            await self._store.save(bookmark)
            self._saved, self._saved_at = max(self._saved, number), time.monotonic()

    async def save_idle(self) -> None:
        """Save, from time to time, where an idle program is that has acknowledged everything.

        So it needs neither the dump nor records that other tables have in its topics.
        """
        if self._saved == self._delivered and time.monotonic() > self._saved_at + _IDLE_SECONDS:
            await self.save(self.bookmark(), self._delivered)
