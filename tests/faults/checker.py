"""Reads Kafka with `read_committed` and compares every message with what was written."""

import asyncio
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from databus_core import names
from devstack import Server
from devstack.replication import run
from faults.copies import Copy, Violation
from faults.ledger import Book, Change, Row
from faults.writer import Writer

_decode = msgspec.json.Decoder().decode


class Stuck(AssertionError):
    """The messages that are waited for did not arrive in time."""


class Checker:
    """Follows the partitions of a pipeline from their beginning."""

    def __init__(self, writers: Sequence[Writer]) -> None:
        self._writers = {writer.ledger.number: writer for writer in writers}
        self._books = {book.name: book for writer in writers for book in writer.ledger.books}
        #: each table as the messages describe it
        self._copies = {name: Copy(book) for name, book in self._books.items()}
        #: the binlog position in the last message's key, by partition and base name of the binlog
        self._places: dict[tuple[TopicPartition, str], tuple[int, int]] = {}
        #: the sequence of the last rows, by partition
        self._sequences: dict[TopicPartition, bytes] = {}
        #: offset and transaction of each partition's last message
        self._last: dict[TopicPartition, tuple[int, tuple[int, int]]] = {}
        #: with a single partition: the current transaction, and the number of its changes that are still to come
        #: (None: nobody knows, because changes of parked tables are left out)
        self._coming: tuple[tuple[int, int], int | None] = (0, 0), 0
        self._step = asyncio.Condition()
        self.partitions: Sequence[TopicPartition] = ()
        self.messages = self.rows = self.transactions = self.loaded_rows = self.truncates = 0

    async def follow(self, kafka: Server, partitions: Sequence[TopicPartition]) -> None:
        """Check all messages until cancelled. Raises Violation."""
        self.partitions = partitions
        # There is no reset policy: a missing offset is an error, not a reason to start at another one.
        consumer = AIOKafkaConsumer(
            bootstrap_servers=kafka.url, isolation_level="read_committed", auto_offset_reset="none", group_id=None
        )
        try:
            await consumer.start()
            consumer.assign(partitions)
            for partition in partitions:
                consumer.seek(partition, 0)
            while True:
                for partition, records in (await consumer.getmany(timeout_ms=200)).items():
                    for record in records:
                        self.check(partition, record)
                async with self._step:
                    self._step.notify_all()
        finally:
            with suppress(asyncio.CancelledError):  # a cancelled task of the consumer must not hide a Violation
                await consumer.stop()

    async def progress(self, transactions: int, seconds: float) -> None:
        """Wait for this many transactions that begin after this call. Raises Stuck."""
        begun = {number: writer.begun for number, writer in self._writers.items()}

        def came() -> bool:
            return sum(max(0, w.seen - begun[n]) for n, w in self._writers.items()) >= transactions

        await self._until(came, seconds)

    async def complete(self, seconds: float) -> None:
        """Wait until everything that was written has arrived. Raises Stuck."""
        await self._until(lambda: not any(book.expected for book in self._books.values()), seconds)

    async def _until(self, what: Any, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds), self._step:
                await self._step.wait_for(what)
        except TimeoutError as error:
            missing = {name: len(book.expected) for name, book in self._books.items()}
            text = f"what was awaited did not come to Kafka within {seconds:g} s; changes still to come: {missing}"
            raise Stuck(text) from error

    async def compare(self, server: Server, schema: str) -> None:
        """Compare the tables that result from the messages with those of the database. Raises Violation."""
        for name, copy in self._copies.items():
            columns = [row[0] for row in await run(server, f"SHOW COLUMNS FROM {schema}.{name}")]
            rows = await run(server, f"SELECT * FROM {schema}.{name}")
            stored = [dict(zip(columns, map(str, row), strict=True)) for row in rows]
            if sorted(copy.rows) != sorted(map(copy.key_of, stored)):
                raise Violation(f"table {name} of the messages has {len(copy.rows)} rows, the database's {len(stored)}")
            if wrong := [row["number"] for row in stored if row != copy.rows[copy.key_of(row)]]:
                raise Violation(f"table {name} of the messages differs from the database's in numbers {wrong[:9]}")

    def check(self, partition: TopicPartition, record: ConsumerRecord) -> None:
        """Check one message: every row of it, its position and sequence, and that its transaction was not split."""
        message = _decode(record.value)
        book = self._books[message["Table"]["Name"]]
        where = f"{record.topic}/{record.partition}@{record.offset}"
        copy, headers = self._copies[book.name], dict(record.headers)
        grows = False
        if message["Action"] == "truncate":
            copy.rows.clear()
            self.truncates += 1
        elif names.SNAPSHOT_HEADER in headers:
            for _, (row,) in _changes(message):
                copy.load(row, where)
                self.loaded_rows += 1
        else:
            for action, images in _changes(message):
                change = self._compare(book, action, images, message.get("Query"), where)
                self._apply(change)
                self._check_whole(partition, record.offset, change, where)
                # all rows of a transaction that was prepared have the position of its XA COMMIT
                grows = change.transaction not in self._writers[book.writer].two_phases
        self._check_order(partition, _decode(record.key)["Pos"], where, grows=grows)
        self._check_sequence(partition, headers[names.SEQUENCE_HEADER], where, has_rows="Rows" in message)
        self.messages += 1

    def _compare(self, book: Book, action: str, images: tuple[Row, ...], query: str | None, where: str) -> Change:
        """Return the table's next change, which has been removed from those that are expected.

        Changes that are left out are removed, too. Raises Violation unless the message contains the next change.
        """
        text = b64decode(query or "").decode()
        while book.expected:
            change = book.next_expected()
            if (change.action, change.images) == (action, images) and change.column in text:
                if book.left_out is not None and book.seen > book.left_out:
                    book.left_out = None
                return change
            if book.left_out is None:
                raise Violation(_difference(change, action, images, where))
            self._copies[book.name].skip(change)
        raise Violation(f"{where}: {book.name}: {action} {_shown(images)} came, which was not written, or came before")

    def _apply(self, change: Change) -> None:
        """Apply the change to our table, and count changes of rows. Raises Violation if a checksum is wrong."""
        self._copies[change.book.name].apply(change)
        if change.column:
            return
        self.rows += 1
        if change.book.kind == "transactions":
            self._writers[change.book.writer].saw(change.transaction)
            self.transactions += 1

    def _check_whole(self, partition: TopicPartition, offset: int, change: Change, where: str) -> None:
        """Verify that Kafka did not commit inside a source transaction: a commit would take an offset between messages.

        With a single partition, also verify that the transaction is complete before the next one begins.
        """
        transaction = change.book.writer, change.transaction
        before, previous = self._last.get(partition, (offset, transaction))
        self._last[partition] = offset, transaction
        if change.column:
            return
        if previous == transaction and offset not in (before, before + 1):
            raise Violation(f"{where}: transaction {transaction} is torn: its previous part is at offset {before}")
        if len(self.partitions) > 1:
            return
        coming, left = self._coming
        if not left and change.book.kind == "transactions":
            coming, left = transaction, int(change.images[0]["text"])
        if any(book.left_out is not None for book in self._writers[change.book.writer].ledger.books):
            left = None
        elif coming != transaction or left == 0:
            raise Violation(
                f"{where}: changes are missing or too many: this one is of transaction {transaction}, "
                f"but {left} changes of transaction {coming} were still to come"
            )
        self._coming = transaction, None if left is None else left - 1

    def _check_order(self, partition: TopicPartition, place: dict[str, Any], where: str, *, grows: bool) -> None:
        base, _, number = place["Name"].rpartition(".")
        now = int(number), place["Pos"]
        before = self._places.get((partition, base), (0, 0))
        if now < before or (now == before and grows):
            raise Violation(f"{where}: the key's position does not grow: {before}, then {now}")
        self._places[partition, base] = now

    def _check_sequence(self, partition: TopicPartition, sequence: bytes, where: str, *, has_rows: bool) -> None:
        """Verify that the sequence is behind that of all rows before; that of a statement is that of the next row."""
        before = self._sequences.get(partition, b"")
        if sequence <= before:
            raise Violation(f"{where}: the sequence does not grow: {before!r}, then {sequence!r}")
        if has_rows:
            self._sequences[partition] = sequence


def _changes(message: dict[str, Any]) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """Yield the changes of a message, each with its images as rows of texts."""
    action = message["Action"]
    if "Query" in message:
        yield action, ()
        return
    columns = [column["Name"] for column in message["Table"]["Columns"]]
    rows = [dict(zip(columns, (b64decode(c).decode() for c in row), strict=True)) for row in message["Rows"]]
    size = 2 if action == "update" else 1
    for place in range(0, len(rows), size):
        yield action, tuple(rows[place : place + size])


def _difference(change: Change, action: str, images: tuple[Row, ...], where: str) -> str:
    ours, theirs = (int(i[-1]["number"]) if i else 0 for i in (change.images, images))
    kind = "lost" if theirs > ours else "doubled" if theirs < ours else "wrong"
    return (
        f"{where}: {change.book.name}: {kind}: {change.action} {_shown(change.images)} of transaction "
        f"{change.transaction} should have come, but {action} {_shown(images)} came"
    )


def _shown(images: tuple[Row, ...]) -> str:
    return " -> ".join(f"number {row['number']} (transaction {row['tx']})" for row in images)
