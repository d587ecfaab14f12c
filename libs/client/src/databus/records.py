"""From a record of Kafka to the changes that a program gets."""

import asyncio
import hashlib
from weakref import WeakKeyDictionary

from databus.block import Block
from databus.bookmark import Bookmark
from databus.change import Rows
from databus.chunks import ChunkJoin, IsIncluded
from databus.claim_checks import fetch
from databus.formats.databus import DatabusDecoder
from databus.formats.event import Event
from databus.formats.others import DATABUS, OtherFormats
from databus.merge import Record
from databus.origin import Origin
from databus.published import Published
from databus.source import Source
from databus_binlog import Position
from databus_core import names
from databus_core.dead_letters import read_headers
from databus_core.errors import ChangeMissing, SchemaMismatch
from databus_core.kafka_compacted import read_latest
from databus_core.settings.rules import DEFAULT_OUTPUT
from databus_core.table_filter import TableFilter

#: reasons of dead letters whose tables are emptied and loaded again later: nothing is missing in the end
_HEALED = {"parked", "skipped"}


class RecordReader:
    """Decodes the records after a bookmark, and leaves out those that are done and those of other tables."""

    def __init__(self, source: Source, bookmark: Bookmark) -> None:
        self._source = source
        self._bookmark = bookmark
        #: records that are done although those before them are not
        self._ahead = {(each.topic, each.partition, each.offset) for each in bookmark.ahead}
        self._wanted = TableFilter(source.tables)
        self._published = Published(source.settings)
        #: how a table's rows are read → its topic; empty if the program does not read the table
        self._topics = WeakKeyDictionary[Rows, str]()
        join = bookmark.join
        self._chunks = ChunkJoin(join.chunked) if join and join.chunked else None
        self._decoder, self._others = DatabusDecoder(), OtherFormats(self._published.options_of)
        #: the statements with this sequence that were met: digest → partition of the first copy; -1: before the start
        self._sequence, self._statements = bookmark.sequence, dict.fromkeys(bookmark.statements, -1)

    async def blocks(self, sequence: str, record: Record) -> list[Block]:
        """Return the changes of a record; none if all are done, or of another table.

        Raises ChangeMissing at a dead letter, ChangesLost, and SchemaMismatch if the record cannot be read.
        """
        if record.topic == self._source.topics.dead_letters:
            await self._require_published(record)
            return []
        try:
            if self._is_done(sequence, record):
                return []
            return await self._decoded(sequence, record)
        except SchemaMismatch as error:
            place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
            raise SchemaMismatch(f"{place}: {error}") from error

    def _is_done(self, sequence: str, record: Record) -> bool:
        if record.value is None or (record.topic, record.partition, record.offset) in self._ahead:
            return True
        if not sequence:
            raise SchemaMismatch("the record has no sequence, so it was published by an early version: begin later")
        return int(sequence[:16]) <= self._bookmark.after

    async def _decoded(self, sequence: str, record: Record) -> list[Block]:
        if not record.value.startswith(DATABUS):
            event = await self._event(record)
            return self._blocks(event, sequence, record) if event else []
        message = self._decoder.message(record.value)
        if not self._is_read(self._decoder.rows_of(message), record):
            return []
        position = self._decoder.position(record.key)
        join, executed = self._bookmark.join, self._bookmark.executed
        if join and join.has(int(sequence[:16]), position):
            return []
        if executed and executed.has(int(sequence[:16]), gtid=""):
            return []
        statement = _digest(record.value) if message.query is not None else ""
        if statement and self._is_copy(sequence, statement, record.partition):
            return []
        if message.claim_check:
            message = self._decoder.message(await asyncio.to_thread(fetch, message.claim_check))
        origin = Origin(
            sequence, position, record.timestamp, record.topic, record.partition, record.offset,
            is_snapshot=_is_marked(record), statement=statement,
        )  # fmt: skip
        block = self._decoder.block(message, origin, self._rows_done(record))
        return self._not_in_chunks(block, lambda chunk: position.log_order <= chunk.log_order)

    async def _event(self, record: Record) -> Event | None:
        """Decode a record in a format other than `databus`; None if it is not about a table that is read."""
        value = record.value
        if claim := self._others.claim(value):
            if self._topic_of(claim.schema, claim.table) != record.topic:
                return None
            value = await asyncio.to_thread(fetch, claim.claim_check)
        event = self._others.event(record.key, value)
        return event if event and self._is_read(event.rows, record) else None

    def _blocks(self, event: Event, sequence: str, record: Record) -> list[Block]:
        place = (record.topic, record.partition, record.offset)
        join, executed = self._bookmark.join, self._bookmark.executed
        if join and join.has_event(int(sequence[:16]), event.position):
            return []
        if executed and executed.has(int(sequence[:16]), event.gtid):
            return []
        statement = _digest(record.value) if event.query is not None else ""
        if statement and self._is_copy(sequence, statement, record.partition):
            return []
        is_snapshot = event.is_snapshot or _is_marked(record)
        origin = Origin(
            sequence, event.position, record.timestamp, *place, is_snapshot=is_snapshot, statement=statement
        )
        block = Block(event.action, event.rows, origin, event.images, event.query, self._rows_done(record))
        start = event.position
        return self._not_in_chunks(block, lambda chunk: start is not None and start.log_order < chunk.log_order)

    def _not_in_chunks(self, block: Block, is_included: IsIncluded) -> list[Block]:
        """Return the changes that a chunked dump does not have."""
        join = self._bookmark.join
        if self._chunks is None or join is None or block.origin.transaction > join.transaction:
            return [block]
        return self._chunks.after(block, is_included)

    def _rows_done(self, record: Record) -> int:
        """Return how many rows at the beginning of a record are done."""
        partial, place = self._bookmark.partial, (record.topic, record.partition, record.offset)
        return partial.rows if partial and (partial.topic, partial.partition, partial.offset) == place else 0

    def _is_read(self, rows: Rows, record: Record) -> bool:
        """Return whether a table is read, and this is its topic: that of another output may have a similar name."""
        topic = self._topics.get(rows)
        if topic is None:
            topic = self._topics[rows] = self._topic_of(rows.table.schema, rows.table.name)
        return bool(topic == record.topic)

    def _topic_of(self, schema: str, table: str) -> str:
        """Return the topic of a table; empty if it is not read, or not published."""
        return self._published.topic_of(schema, table) if self._wanted.matches(schema, table) else ""

    def _is_copy(self, sequence: str, statement: str, partition: int) -> bool:
        """Return whether a statement, of which each partition has a copy, was met before."""
        if sequence != self._sequence:
            self._sequence, self._statements = sequence, {}
        return self._statements.setdefault(statement, partition) != partition

    async def _require_published(self, record: Record) -> None:
        """Raise ChangeMissing if the record is a dead letter of a change that is still missing."""
        if record.value is None:
            return
        letter, join, executed = read_headers(record.headers), self._bookmark.join, self._bookmark.executed
        if (
            letter.reason in _HEALED
            or letter.output != DEFAULT_OUTPUT
            or letter.transaction <= self._bookmark.after
            or (join and join.has(letter.transaction, Position("", letter.file, letter.end)))
            or not self._wanted.matches(letter.schema, letter.table)
            or (executed and executed.has(letter.transaction, letter.gtid))
        ):
            return
        pending, _ = await read_latest(self._source.settings.kafka, record.topic)
        if record.key in pending:
            raise ChangeMissing(
                f"a change of {letter.table_name} was not published: {letter.error}; `databus deadletter list` shows "
                "it: replay or discard it, and start this program again"
            )


def _digest(value: bytes) -> str:
    return hashlib.blake2b(value, digest_size=8).hexdigest()


def _is_marked(record: Record) -> bool:
    """Return whether the header says that a backfill loaded the rows."""
    return any(name == names.SNAPSHOT_HEADER for name, _ in record.headers)
