"""Send messages that may not fit their topic, or not be encodable: those go by the policy `publisher.oversize`."""

from databus.dead_letters import DeadLetter, Reason
from databus.errors import FatalError, PoisonError
from databus.formats.databus import Encoder
from databus.settings import Settings
from databus_publisher.claim_checks import ClaimChecks
from databus_publisher.dead_letters import DeadLetters
from databus_publisher.messages import Message
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics


class Outlet:
    """Sends messages one by one, each whole, in pieces, as a claim check or as a dead letter; or stops."""

    def __init__(self, settings: Settings, producer: Producer, topics: Topics, encoder: Encoder) -> None:
        self._policy = settings.publisher.oversize
        self._producer = producer
        self._topics = topics
        self._encoder = encoder
        self._claim_checks = ClaimChecks(settings.publisher.claim_checks)
        self._dead_letters = DeadLetters(producer, topics)

    async def send(self, message: Message) -> None:
        """Send a message, by policy if it has to be. Raises FatalError where that is to stop."""
        try:
            key, value = message.encode(self._encoder)
        except PoisonError as error:
            await self._refuse(message, "unencodable", f"{message} cannot be encoded: {error}")
            return
        lane = message.lane
        sent = await self._producer.send(lane, key, value)
        if not sent and (limit := await self._topics.asked_again(lane.topic)) != lane.limit:
            lane.limit = limit
            sent = await self._producer.send(lane, key, value)
        if not sent:
            why = f"{message} takes {len(value)} bytes, topic {lane.topic} batches of {lane.limit.record}"
            await self._refuse(message, "too_large", why, key, value)

    async def unread(self, message: Message, size: int) -> None:
        """Do what is to be done for a row that is too large even to be read."""
        await self._refuse(
            message, "unread", f"{message} has a row of {size} bytes, more than reader.row_limit", size=size
        )

    async def _refuse(
        self, message: Message, reason: Reason, why: str, key: bytes = b"", value: bytes = b"", size: int = 0
    ) -> None:
        if self._policy == "stop":
            raise FatalError(f"{why}: raise the limit, or let publisher.oversize say what else to do")
        if self._policy == "split" and len(message.ordinals) > 1:
            for half in message.halves():
                await self.send(half)
            return
        if self._policy == "claim_check" and value and await self._send_claim_check(message, key, value):
            return
        await self._dead_letters.write(_letter(message, reason, why, key, size or len(value)), value)

    async def _send_claim_check(self, message: Message, key: bytes, value: bytes) -> bool:
        check = await self._claim_checks.store(message, value)
        return await self._producer.send(
            message.lane, key, self._encoder.claim_check(message.table, message.action, *check)
        )


def _letter(message: Message, reason: Reason, why: str, key: bytes, size: int) -> DeadLetter:
    return DeadLetter(
        reason=reason,
        error=why,
        topic=message.lane.topic,
        partition=message.lane.partition,
        key=key,
        schema=message.table.schema,
        table=message.table.name,
        action=message.action,
        gtid=message.begin.gtid,
        file=message.begin.file,
        start=message.start,
        end=message.end,
        transaction=message.begin.transaction,
        row=message.ordinals[0],
        size=size,
        time=message.begin.time_us,
    )
