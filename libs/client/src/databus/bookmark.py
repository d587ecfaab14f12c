"""Where a program is in the changes of a pipeline: enough to continue without gap or duplicate."""

from collections.abc import Collection
from typing import Self

import msgspec

from databus.origin import Origin
from databus_binlog import Position
from databus_core.errors import InvalidSettings
from databus_core.kafka_ends import Offsets


class Snapshot(msgspec.Struct, frozen=True):
    """A dump that is being loaded, up to a row of a file."""

    dump: str
    #: the file, in the order of `Databus.dump_files`; the line in it; and rows of that line that are done
    file: str = ""
    line: int = 0
    rows: int = 0


class Join(msgspec.Struct, frozen=True):
    """Which records the dump has: of those before these offsets, those up to its position."""

    position: Position
    until: Offsets

    def has(self, topic: str, partition: int, offset: int, position: Position) -> bool:
        """Return whether the dump has the changes of a record that ends at this position of the binlog."""
        return offset < self.until.get(topic, {}).get(partition, 0) and position.log_order <= self.position.log_order

    def has_event(self, topic: str, partition: int, offset: int, start: Position | None) -> bool:
        """Return whether the dump has the changes of a record whose event starts at this position of the binlog.

        Raises InvalidSettings if that is not known, because the record has no position.
        """
        if offset >= self.until.get(topic, {}).get(partition, 0):
            return False
        if start is None:
            raise InvalidSettings(
                f"topic {topic}, partition {partition}, offset {offset}: the record has no position, so it is not "
                "known whether the snapshot already has it: begin again with a new snapshot while no backfill runs, or "
                "publish in format databus"
            )
        return start.log_order < self.position.log_order


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
    #: the next record of each partition
    offsets: Offsets
    #: highest sequence that is done; empty before the first change
    sequence: str = ""
    #: ordinal of a transaction: of topics that `offsets` lacks, records up to it are done
    transaction: int = 0
    #: ordinal of the last transaction before the start: records up to it are left out, whatever their offset
    after: int = 0
    partial: Partial | None = None
    #: None if no dump is being loaded
    snapshot: Snapshot | None = None
    join: Join | None = None

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a bookmark. Raises InvalidSettings."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidSettings(f"the saved bookmark cannot be read: {error}") from error

    def require(self, pipeline: str, tables: Collection[str]) -> None:
        """Raise InvalidSettings if a program cannot continue here that reads these tables of this pipeline."""
        if self.pipeline != pipeline:
            raise InvalidSettings(f"the bookmark is one of pipeline {self.pipeline}, not of {pipeline}")
        if added := set(tables) - set(self.tables):
            raise InvalidSettings(
                f"the bookmark was made for {', '.join(self.tables)}; the earlier rows of {', '.join(sorted(added))} "
                "would be missing: read these tables with a store of their own, or begin again without the bookmark"
            )

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class Progress:
    """Moves a bookmark forward, one record after the other."""

    def __init__(self, bookmark: Bookmark) -> None:
        self._bookmark = bookmark
        self._offsets: Offsets = {topic: dict(partitions) for topic, partitions in bookmark.offsets.items()}
        self._sequence = bookmark.sequence
        self._snapshot = bookmark.snapshot
        self._partial = bookmark.partial

    def done(self, origin: Origin, rows: int | None = None) -> None:
        """Note that a record is done; with `rows`, only the first ones of it."""
        if self._snapshot and origin.file:
            line, rows = (origin.line + 1, 0) if rows is None else (origin.line, rows)
            self._snapshot = Snapshot(self._snapshot.dump, origin.file, line, rows)
            return
        self._snapshot = None
        offset = origin.offset if rows is not None else origin.offset + 1
        self._offsets.setdefault(origin.topic, {})[origin.partition] = offset
        self._partial = None if rows is None else Partial(origin.topic, origin.partition, origin.offset, rows)
        self._sequence = max(self._sequence, origin.sequence)

    def passed(self, topic: str, partition: int, offset: int) -> None:
        """Note that everything before an offset is done, if that is further than before."""
        offsets = self._offsets.setdefault(topic, {})
        offsets[partition] = max(offset, offsets.get(partition, 0))

    def loaded(self) -> None:
        """Note that all rows of the dump are done."""
        self._snapshot = None

    def bookmark(self) -> Bookmark:
        """Return the bookmark."""
        return msgspec.structs.replace(
            self._bookmark,
            offsets={topic: dict(partitions) for topic, partitions in self._offsets.items()},
            sequence=self._sequence,
            transaction=max(self._bookmark.transaction, int(self._sequence[:16] or 0)),
            partial=self._partial,
            snapshot=self._snapshot,
            join=None if self._is_joined else self._bookmark.join,
        )

    @property
    def _is_joined(self) -> bool:
        """Whether no record that the dump may have is left."""
        until = self._bookmark.join.until if self._bookmark.join and not self._snapshot else {}
        return all(
            self._offsets.get(topic, {}).get(partition, 0) >= offset
            for topic, partitions in until.items()
            for partition, offset in partitions.items()
        )
