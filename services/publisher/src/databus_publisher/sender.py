"""Encode messages and send them. `publisher.oversize` decides about those that are too large or cannot be encoded."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from databus_core.dead_letters import DeadLetter, Reason
from databus_core.errors import RAISE_LIMIT, FatalError, PoisonError
from databus_core.settings import Publisher
from databus_messages.formats.base import Change, DdlStatement, KeyValueRecords, Record
from databus_messages.message import Frame, Message, Records
from databus_messages.routing.partitions import Partition
from databus_publisher.claim_checks import ClaimChecks
from databus_publisher.dead_letters import DeadLetters
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics

#: what helps besides another policy
_REMEDIES: Mapping[Reason, str] = {
    "too_large": f"{RAISE_LIMIT}, or ",
    "unread": "raise reader.row_limit, or ",
    "unencodable": "",
    "no_topic": "",
}


@dataclass(frozen=True)
class Undelivered:
    """A message or record that could not be sent, its partition, and the reason."""

    message: Message
    partition: Partition
    reason: Reason
    error: str
    #: bytes of the record's value, or of an unread row's binlog event; 0 if the message could not be encoded
    size: int = 0
    #: None if the message was not encoded
    record: Record | None = None
    #: index of the record in its message
    index: int = 0
    #: number of the message's records
    count: int = 1


class Sender:
    """Sends messages. One that cannot be sent is split, replaced by a claim check or a dead letter, or is an error."""

    def __init__(self, settings: Publisher, producer: Producer, topics: Topics, dead_letters: DeadLetters) -> None:
        self._policy = settings.oversize
        self._producer = producer
        self._topics = topics
        self._claim_checks = ClaimChecks(settings.claim_checks)
        self._dead_letters = dead_letters
        #: whether the open transaction is skipped: its rows become dead letters, and it has no frames
        self.skips = False

    async def send(self, messages: Iterable[Message]) -> None:
        """Encode each message once, and send its records to all its partitions."""
        for message in messages:
            if self.skips and isinstance(message.content, Frame):
                continue
            if message.unread is not None:
                await self._refuse_unread(message, message.unread.size)
                continue
            try:
                records = await self._encode(message) if message.output.calls_services else message.sequenced()
            except PoisonError as error:
                await self._refuse_unencodable(message, error)
                continue
            if not isinstance(records, KeyValueRecords) or self.skips:
                await self._send_records(message, records)
                continue
            for partition in message.partitions:
                # The fast path: nearly all records fit into the partition's open batch.
                if (sent := self._producer.fill(partition, records)) < len(records.values):
                    await self._fill(message, partition, records, sent)

    async def _encode(self, message: Message) -> Records:
        """Encode a message without blocking the event loop: its format may call another service."""
        return await asyncio.to_thread(message.sequenced) if message.may_block else message.sequenced()

    async def _fill(self, message: Message, partition: Partition, records: KeyValueRecords, sent: int) -> None:
        """Send the rest of the records to one partition. Raises ValueError unless there are as many keys as values."""
        if len(records.keys) != len(records.values):
            raise ValueError("there must be as many keys as values")
        while sent < len(records):
            await self._send_record(message, partition, records, sent)
            sent += 1
            sent += self._producer.fill(partition, records, sent)

    async def _send_records(self, message: Message, records: Records) -> None:
        for index, record in enumerate(records):
            for partition in (Partition(record.topic, 0),) if record.topic else message.partitions:
                await self._send_record(message, partition, records, index)

    async def _send_record(self, message: Message, partition: Partition, records: Records, index: int) -> None:
        record = records[index]
        reason: Reason | None = None
        if partition.refusal:
            reason, error = "no_topic", f"{message}: {partition.refusal}"
        elif self.skips and isinstance(message.content, Change):
            reason, error = "skipped", f"{message} is in a transaction that is skipped"
        if reason:
            size = len(record.value or b"")
            await self._refuse(Undelivered(message, partition, reason, error, size, record, index, len(records)))
            return
        if await self._producer.send(partition, record):
            return
        if limit := await self._topics.raised_limit(partition.topic):
            self._producer.raise_limit(partition.topic, limit)
            if await self._producer.send(partition, record):
                return
        limit = self._producer.limit(partition.topic)
        size = len(record.value or b"")
        accepted = f"topic {partition.topic} accepts batches of {limit.record} bytes"
        error = f"{message} takes {size} bytes plus overhead, {accepted}"
        await self._refuse(Undelivered(message, partition, "too_large", error, size, record, index, len(records)))

    async def _refuse_unread(self, message: Message, size: int) -> None:
        error = f"{message} has a row of {size} bytes, more than reader.row_limit"
        await self._refuse(Undelivered(message, message.partitions[0], "unread", error, size))

    async def _refuse_unencodable(self, message: Message, cause: PoisonError) -> None:
        """Refuse only the rows that cannot be encoded: unless the policy is `stop`, several rows are split first."""
        if (self._policy != "stop" or self.skips) and (halves := message.halves()):
            await self.send(halves)
            return
        error = f"{message} cannot be encoded: {cause}"
        for partition in message.partitions:
            await self._refuse(Undelivered(message, partition, "unencodable", error))

    async def _refuse(self, undelivered: Undelivered) -> None:
        message, record = undelivered.message, undelivered.record
        content, no_topic = message.content, undelivered.reason == "no_topic"
        skipped = self.skips and isinstance(content, Change)
        if isinstance(content, Frame):
            if no_topic:  # there are no changes in the topic that it would frame
                return
            # without it, consumers cannot see where transactions begin and end
            raise FatalError(f"{undelivered.error}: {RAISE_LIMIT}")
        if self._policy == "stop" and not skipped:
            remedy = f"{_REMEDIES[undelivered.reason]}set publisher.oversize to another policy"
            raise FatalError(f"{undelivered.error}: {remedy}")
        if no_topic or skipped or not await self._send_otherwise(undelivered, content):
            await self._dead_letters.write(_letter(undelivered, content), (record and record.value) or b"")

    async def _send_otherwise(self, undelivered: Undelivered, content: Change | DdlStatement) -> bool:
        """Send what does not fit in smaller messages, or as a claim check. Return whether the policy has such a way."""
        if self._policy == "split" and undelivered.count == 1 and (halves := undelivered.message.halves()):
            await self.send(halves)
            return True
        if self._policy == "claim_check" and (record := undelivered.record):
            return await self._send_claim_check(undelivered, content, record)
        return False

    async def _send_claim_check(self, undelivered: Undelivered, content: Change | DdlStatement, record: Record) -> bool:
        value = record.value or b""
        name = f"{content.begin.file}-{content.start}-{_ordinal(undelivered, content)}"
        check = await self._claim_checks.store(undelivered.partition.topic, name, value)
        stand_in = record._replace(value=undelivered.message.output.format.claim_check(content, check))
        return await self._producer.send(undelivered.partition, stand_in)


def _ordinal(undelivered: Undelivered, content: Change | DdlStatement) -> int:
    """Return the ordinal of the record's first row in its transaction."""
    row = undelivered.record.row if undelivered.record else None
    return content.sequences.row(undelivered.index, undelivered.count, row)


def _letter(undelivered: Undelivered, content: Change | DdlStatement) -> DeadLetter:
    # A DROP DATABASE that has tables is for their topic.
    table = content.dropped[0] if isinstance(content, DdlStatement) and content.dropped else content.table
    return DeadLetter(
        reason=undelivered.reason,
        error=undelivered.error,
        topic=undelivered.partition.topic,
        partition=undelivered.partition.number,
        format=undelivered.message.output.rule.format,
        output=undelivered.message.output.rule.output,
        key=undelivered.record.key if undelivered.record else None,
        record_headers=tuple(undelivered.record.headers) if undelivered.record else (),
        schema=table.schema,
        table=table.name,
        action=content.action,
        gtid=content.begin.gtid,
        file=content.begin.file,
        start=content.start,
        end=content.end,
        transaction=content.begin.transaction,
        row=_ordinal(undelivered, content),
        record=undelivered.index,
        size=undelivered.size,
        time=content.begin.time_us,
    )
