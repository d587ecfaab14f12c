"""From a record of Kafka to the changes that a program gets."""

import asyncio
import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from databus.block import Block
from databus.bookmark import Bookmark
from databus.formats.databus import ClaimCheck, DatabusDecoder, DatabusRows
from databus.merge import Record
from databus.origin import Origin
from databus.source import Source
from databus_core import names
from databus_core.dead_letters import read_headers
from databus_core.errors import ChangeMissing, ChangesLost, SchemaMismatch
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
        self._wanted = TableFilter(source.tables)
        self._decoder = DatabusDecoder()
        #: whether a definition is of a table that the program reads
        self._known = WeakKeyDictionary[DatabusRows, bool]()
        #: the statements with the sequence of the current one: value → partition of the first copy
        self._sequence, self._statements = "", dict[bytes, int]()

    async def block(self, sequence: str, record: Record) -> Block | None:
        """Return the changes of a record; None if all are done, or of another table.

        Raises ChangeMissing at a dead letter, ChangesLost, and SchemaMismatch if the record cannot be read.
        """
        if record.topic == self._source.topics.dead_letters:
            await self._require_published(record)
            return None
        if self._is_done(sequence, record):
            return None
        try:
            return await self._decoded(sequence, record)
        except SchemaMismatch as error:
            place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
            raise SchemaMismatch(f"{place}: {error}") from error

    def _is_done(self, sequence: str, record: Record) -> bool:
        transaction = int(sequence[:16] or 0)
        done = self._bookmark.after if record.topic in self._bookmark.offsets else self._bookmark.transaction
        return bool(record.value is None or transaction <= done)

    async def _decoded(self, sequence: str, record: Record) -> Block | None:
        message = self._decoder.message(record.value)
        if not self._is_wanted(self._decoder.rows_of(message)):
            return None
        position = self._decoder.position(record.key)
        join, partial = self._bookmark.join, self._bookmark.partial
        if join and join.has(record.topic, record.partition, record.offset, position):
            return None
        if message.query is not None and self._is_copy(sequence, record):
            return None
        if message.claim_check:
            message = self._decoder.message(await asyncio.to_thread(_fetch, message.claim_check))
        origin = Origin(
            sequence, position, record.timestamp, record.topic, record.partition, record.offset,
            is_snapshot=any(name == names.SNAPSHOT_HEADER for name, _ in record.headers),
        )  # fmt: skip
        place = (record.topic, record.partition, record.offset)
        begun = partial and (partial.topic, partial.partition, partial.offset) == place
        return self._decoder.block(message, origin, partial.rows if partial and begun else 0)

    def _is_wanted(self, rows: DatabusRows) -> bool:
        """Return whether the program reads a table."""
        known = self._known.get(rows)
        if known is None:
            known = self._known[rows] = self._wanted.matches(rows.table.schema, rows.table.name)
        return known

    def _is_copy(self, sequence: str, record: Record) -> bool:
        """Return whether a statement, of which each partition has a copy, was met before."""
        if sequence != self._sequence:
            self._sequence, self._statements = sequence, {}
        return self._statements.setdefault(record.value, record.partition) != int(record.partition)

    async def _require_published(self, record: Record) -> None:
        """Raise ChangeMissing if the record is a dead letter of a change that is still missing."""
        if record.value is None:
            return
        letter = read_headers(record.headers)
        if (
            letter.reason in _HEALED
            or letter.output != DEFAULT_OUTPUT
            or letter.transaction <= self._bookmark.after
            or not self._wanted.matches(letter.schema, letter.table)
        ):
            return
        pending, _ = await read_latest(self._source.settings.kafka, record.topic)
        if record.key in pending:
            raise ChangeMissing(
                f"a change of {letter.table_name} was not published: {letter.error}; `databus deadletter list` shows "
                "it: replay or discard it, and start this program again"
            )


def _fetch(check: ClaimCheck) -> bytes:
    """Read a value that is stored outside of Kafka. Raises ChangesLost if it is not there, or differs."""
    path = Path(unquote(urlsplit(check.url).path))
    try:
        value = path.read_bytes()
    except OSError as error:
        text = f"a value is stored in {path}, which cannot be read ({error.strerror}): mount publisher.claim_checks"
        raise ChangesLost(text) from error
    if hashlib.sha256(value).hexdigest() != check.sha256:
        raise ChangesLost(f"the value in {path} is not the one that was published (SHA-256)")
    return value
