"""Send records that may not fit their topic, or not be encodable: those go by the policy `publisher.oversize`."""

from collections.abc import Iterable, Sequence

from databus.dead_letters import DeadLetter, Reason
from databus.errors import FatalError, PoisonError
from databus.settings import Settings
from databus_messages.formats.base import Change, DdlStatement, Record
from databus_publisher.batches import Lane
from databus_publisher.claim_checks import ClaimChecks
from databus_publisher.dead_letters import DeadLetters
from databus_publisher.messages import Message, halves
from databus_publisher.outputs import Output
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics


class Outlet:
    """Sends records, each whole, in pieces, as a claim check or as a dead letter; or stops."""

    def __init__(self, settings: Settings, producer: Producer, topics: Topics) -> None:
        self._policy = settings.publisher.oversize
        self._producer = producer
        self._topics = topics
        self._claim_checks = ClaimChecks(settings.publisher.claim_checks)
        self._dead_letters = DeadLetters(producer, topics)

    async def change(self, output: Output, lane: Lane, change: Change) -> None:
        """Send the records of rows; nearly all find room in the batch that is being filled."""
        try:
            records = await output.records(change)
        except PoisonError as error:
            await self._unencodable(Message(output, lane, change), error)
            return
        place = lane.extend(records)
        while place < len(records):
            record = records[place]
            to = output.lane_of(record, lane)
            if not to.append(record.key, record.value, record.headers):
                await self._send(Message(output, to, change, place, len(records)), record)
            place += 1
            place += lane.extend(records, place)

    async def statement(self, output: Output, lanes: Sequence[Lane], statement: DdlStatement) -> None:
        """Send the records of a statement to all lanes, and once to a topic of the format's own."""
        try:
            records = await output.records(statement)
        except PoisonError as error:
            for lane in lanes:
                await self._unencodable(Message(output, lane, statement), error)
            return
        for place, record in enumerate(records):
            for lane in lanes[:1] if record.topic else lanes:
                to = output.lane_of(record, lane)
                await self._send(Message(output, to, statement, place, len(records)), record)

    async def frame(self, output: Output, lane: Lane | None, records: Iterable[Record]) -> None:
        """Send what stands around changes, or between transactions; it has to fit. Raises FatalError."""
        for record in records:
            to = output.lane_of(record, lane)
            if not await self._producer.send(to, record.key, record.value, record.headers):
                raise FatalError(
                    f"topic {to.topic} takes no batch of {to.limit.record + 1} bytes: raise max.message.bytes"
                )

    async def unread(self, message: Message, size: int) -> None:
        """Do what is to be done for a row that is too large even to be read."""
        why = f"{message} has a row of {size} bytes, more than reader.row_limit"
        await self._refuse(message, "unread", why, size)

    async def _send(self, message: Message, record: Record) -> None:
        lane, value, headers = message.lane, record.value, record.headers
        sent = await self._producer.send(lane, record.key, value, headers)
        if not sent and (limit := await self._topics.asked_again(lane.topic)) != lane.limit:
            lane.limit = limit
            sent = await self._producer.send(lane, record.key, value, headers)
        if not sent:
            size = len(value or b"")
            why = f"{message} takes {size} bytes, topic {lane.topic} batches of {lane.limit.record}"
            await self._refuse(message, "too_large", why, size, record)

    async def _unencodable(self, message: Message, error: PoisonError) -> None:
        """Leave out rows that cannot be encoded, and no others."""
        if isinstance(message.told, Change) and message.several and self._policy != "stop":
            for half in halves(message.told):
                await self.change(message.output, message.lane, half)
            return
        await self._refuse(message, "unencodable", f"{message} cannot be encoded: {error}")

    async def _refuse(
        self, message: Message, reason: Reason, why: str, size: int = 0, record: Record | None = None
    ) -> None:
        if self._policy == "stop":
            raise FatalError(f"{why}: raise the limit, or let publisher.oversize say what else to do")
        if self._policy == "split" and isinstance(message.told, Change) and message.several:
            for half in halves(message.told):
                await self.change(message.output, message.lane, half)
            return
        if self._policy == "claim_check" and record and await self._send_claim_check(message, record):
            return
        letter = _letter(message, reason, why, size, record.key if record else None)
        await self._dead_letters.write(letter, (record and record.value) or b"")

    async def _send_claim_check(self, message: Message, record: Record) -> bool:
        check = await self._claim_checks.store(message, record.value or b"")
        value = message.output.format.claim_check(message.told, check)
        return await self._producer.send(message.lane, record.key, value, record.headers)


def _letter(message: Message, reason: Reason, why: str, size: int, key: bytes | None) -> DeadLetter:
    told = message.told
    return DeadLetter(
        reason=reason,
        error=why,
        topic=message.lane.topic,
        partition=message.lane.partition,
        format=message.output.rule.format,
        key=key,
        schema=told.table.schema,
        table=told.table.name,
        action=told.action,
        gtid=told.begin.gtid,
        file=told.begin.file,
        start=told.start,
        end=told.end,
        transaction=told.begin.transaction,
        row=message.ordinal,
        record=message.place,
        size=size,
        time=told.begin.time_us,
    )
