"""Where a program is in the changes of a pipeline: enough to continue without gap or duplicate."""

from collections.abc import Collection, Mapping
from typing import Self

import msgspec

from databus.executed import Executed
from databus.origin import Origin
from databus_binlog import Position
from databus_core.errors import InvalidSettings
from databus_core.kafka_ends import Offsets


class Snapshot(msgspec.Struct, frozen=True):
    """A dump that is being loaded, up to a row of a file."""

    dump: str
    #: the file, in the order of the manifest; the line in it; and rows of that line that are done
    file: str = ""
    line: int = 0
    rows: int = 0


class Part(msgspec.Struct, frozen=True):
    """A part of a table in a chunked dump: from the lowest value of its key column to below that of the next part."""

    #: file and offset up to which the part has all changes of its rows
    position: Position
    low: int | None = None


class Parts(msgspec.Struct, frozen=True):
    """The parts of a table, in the order of the key."""

    #: the key column; empty if there is only one part
    column: str
    parts: list[Part]


class Join(msgspec.Struct, frozen=True):
    """Which records a dump has: those up to its position, of the transactions up to this one.

    Later transactions are newer than the dump, whatever their position: after a failover, that is one of another
    server.
    """

    #: file and offset of the dump; of a chunked one, those of its first chunk
    position: Position
    #: ordinal of the last transaction that the pipeline had published when it had passed the position
    transaction: int
    #: ordinal of a transaction; the dump has it and all before, whatever their position
    after: int = 0
    #: by table, what a chunked dump has after `position`
    chunked: dict[str, Parts] = {}

    def has(self, transaction: int, end: Position) -> bool:
        """Return whether the dump has the changes of a record whose event ends at this position of the binlog."""
        if transaction <= self.after:
            return True
        return transaction <= self.transaction and end.log_order <= self.position.log_order

    def has_event(self, transaction: int, start: Position | None) -> bool:
        """Return whether the dump has the changes of a record whose event starts at this position of the binlog.

        Raises InvalidSettings if that is not known, because the record has no position.
        """
        if transaction <= self.after or transaction > self.transaction:
            return transaction <= self.after
        if start is None:
            raise InvalidSettings(
                f"a record of transaction {transaction} has no position, so it is not known whether the snapshot "
                "already has it: begin again with a new snapshot while no backfill runs, or publish in format databus"
            )
        return start.log_order < self.position.log_order


class Place(msgspec.Struct, frozen=True):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


class Partial(msgspec.Struct, frozen=True):
    """A record of which only the first rows are done."""

    topic: str
    partition: int
    offset: int
    rows: int


class Bookmark(msgspec.Struct, frozen=True, kw_only=True):
    """What is done. `str()` gives a text that `parse` reads, for a store of your own."""

    #: name of the pipeline
    pipeline: str
    #: patterns of the tables that are read
    tables: list[str]
    #: the next record of each partition that is known
    offsets: Offsets
    #: ordinal of the last transaction before the start; records up to it are left out, whatever their offset
    after: int = 0
    #: ordinal of the last reset of the pipeline, or change of its rules, before the start
    unbroken_after: int = 0
    #: topics that did not exist any more → ordinal of the last transaction that was read before
    gone: dict[str, int] = {}
    #: highest sequence that is done; empty before the first change
    sequence: str = ""
    #: digests of the statements with this sequence that are done: each partition has a copy of a statement
    statements: list[str] = []
    partial: Partial | None = None
    #: records behind `offsets` that are done: dead letters that were replayed into the middle of a transaction
    ahead: list[Place] = []
    #: None if no dump is being loaded
    snapshot: Snapshot | None = None
    join: Join | None = None
    #: of a start after a GTID set that has some of the transactions after `after`
    executed: Executed | None = None

    @property
    def transaction(self) -> int:
        """Ordinal of the last transaction of which something is done, or that is before the start."""
        return max(self.after, int(self.sequence[:16] or 0))

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a bookmark. Raises InvalidSettings."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidSettings(f"the saved bookmark cannot be read: {error}") from error

    def for_tables(self, pipeline: str, tables: Collection[str]) -> Self:
        """Return the bookmark with which a program continues that reads these tables.

        Raises InvalidSettings if it cannot, because it is of another pipeline or of fewer tables.
        """
        if self.pipeline != pipeline:
            raise InvalidSettings(f"the bookmark is one of pipeline {self.pipeline}, not of {pipeline}")
        if added := set(tables) - set(self.tables):
            raise InvalidSettings(
                f"the bookmark was made for {', '.join(self.tables)}; the earlier rows of {', '.join(sorted(added))} "
                "would be missing: read these tables with a store of their own, or begin again without the bookmark"
            )
        return msgspec.structs.replace(self, tables=list(tables))

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class BookmarkBuilder:
    """Moves a bookmark forward, one record after the other."""

    def __init__(self, bookmark: Bookmark) -> None:
        self._begin = bookmark
        self._offsets: Offsets = {topic: dict(partitions) for topic, partitions in bookmark.offsets.items()}
        self._sequence, self._statements = bookmark.sequence, list(bookmark.statements)
        self._snapshot, self._partial = bookmark.snapshot, bookmark.partial
        self._gone, self._ahead = dict(bookmark.gone), list(bookmark.ahead)

    def done(self, origin: Origin, rows: int | None = None) -> None:
        """Note that a record, or a part of it, is done; with `rows`, only the first ones of it."""
        if self._snapshot and origin.file:
            line, rows = (origin.line + 1, 0) if rows is None else (origin.line, rows)
            self._snapshot = Snapshot(self._snapshot.dump, origin.file, line, rows)
            return
        self._snapshot = None
        if rows is not None:
            rows += origin.before
        elif origin.through:
            rows = origin.through
        place = (origin.topic, origin.partition)
        if self._partial and (self._partial.topic, self._partial.partition) == place:
            self._partial = None
        if rows is not None:
            self._partial = Partial(*place, origin.offset, rows)
        offset = origin.offset if rows is not None else origin.offset + 1
        self._offsets.setdefault(origin.topic, {})[origin.partition] = offset
        self._leave_behind(origin.topic, origin.partition, offset)
        if origin.sequence > self._sequence:
            self._sequence, self._statements = origin.sequence, []
        if origin.statement and origin.sequence == self._sequence:
            self._statements.append(origin.statement)

    def passed(self, topic: str, partition: int, offset: int) -> None:
        """Note that everything before an offset is done, if that is further than before."""
        offsets = self._offsets.setdefault(topic, {})
        offsets[partition] = max(offset, offsets.get(partition, 0))
        self._leave_behind(topic, partition, offset)

    def _leave_behind(self, topic: str, partition: int, offset: int) -> None:
        """Forget records that were done ahead, and are before an offset."""
        if self._ahead:
            place = (topic, partition)
            self._ahead = [
                each for each in self._ahead if (each.topic, each.partition) != place or each.offset >= offset
            ]

    def gone(self, topics: Mapping[str, int]) -> None:
        """Note that topics do not exist any more, of which everything up to a transaction is done."""
        self._gone |= topics
        for topic in topics:
            self._offsets.pop(topic, None)

    def loaded(self) -> None:
        """Note that all rows of the dump are done."""
        self._snapshot = None

    def bookmark(self) -> Bookmark:
        """Return the bookmark."""
        return msgspec.structs.replace(
            self._begin,
            offsets={topic: dict(partitions) for topic, partitions in self._offsets.items()},
            sequence=self._sequence,
            statements=list(self._statements),
            gone=dict(self._gone),
            partial=self._partial,
            ahead=list(self._ahead),
            snapshot=self._snapshot,
        )
