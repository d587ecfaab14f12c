"""The formats of one generation, one for each rule, and what each has told of the open transaction."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import ValidationError

from databus.errors import FatalError, InvalidSettings
from databus.events import Begin, Start
from databus.settings import Settings
from databus.settings.rules import Rule
from databus_messages import formats
from databus_messages.formats import AnyFormat
from databus_messages.formats.base import Change, DdlStatement, Format, KeyValueRecords, MessageSource, Options, Record
from databus_publisher.batches import Lane
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics


class Plan(NamedTuple):
    """What a rule's format is made of."""

    rule: Rule
    kind: type[AnyFormat]
    options: Options


class Output:
    """What one rule says, in its format."""

    def __init__(self, plan: Plan, source: MessageSource, own_lanes: dict[str, Lane]) -> None:
        self.rule = plan.rule
        self.format: AnyFormat = plan.kind(source, plan.options)
        #: of the format's own topics
        self.own_lanes = own_lanes
        #: a transaction is held back until it is whole
        self.waits = self.format.needs_transaction_end
        #: something stands before or behind a transaction's changes, or they are counted
        self.emits_frames = self.waits or self.format.emits_frames
        #: it makes one record of an event, with little ado
        self.single = plan.kind.whole is not Format.whole
        #: it tells, in topics of its own, how far it is
        self.emits_heartbeats = self.format.emits_heartbeats
        #: row changes told of the open transaction
        self.told = 0
        #: where they went
        self.lanes: dict[Lane, None] = {}
        self._beginning: Sequence[Record] = ()

    def lane_of(self, record: Record, lane: Lane | None) -> Lane:
        """Give the lane of a record: of a topic of the format's own, or this one."""
        found = self.own_lanes.get(record.topic) if record.topic else lane
        if found is None:
            raise FatalError(f"format {self.rule.format} writes to topic {record.topic}, which it did not name")
        return found

    def opening(self, lane: Lane, begin: Begin) -> list[Record]:
        """Give what stands before the first change of a transaction in a lane; the format's own topics have it once."""
        if self.lanes:
            records = [record for record in self._beginning if record.topic is None]
        else:
            self._beginning = records = list(self.format.begin(begin))
        self.lanes[lane] = None
        return records

    def count(self, changes: int) -> range:
        """Give row changes their ordinals among those that are told of the transaction."""
        first = self.told
        self.told += changes
        return range(first, self.told)

    async def records(self, told: Change | DdlStatement) -> Sequence[Record]:
        """Make the records of rows or of a statement; nobody has to wait while a neighbour is asked for it."""
        if self.format.may_block(told.table):
            return await asyncio.to_thread(self._records, told)
        return self._records(told)

    def _records(self, told: Change | DdlStatement) -> Sequence[Record]:
        records = self.format.change(told) if isinstance(told, Change) else self.format.statement(told)
        return records if isinstance(records, KeyValueRecords) else tuple(records)

    def close(self) -> None:
        """Forget the transaction."""
        self.told = 0
        self.lanes = {}


def plan(settings: Settings) -> list[Plan]:
    """Find the formats of all rules. Raises InvalidSettings with all that is wrong, one a line."""
    plans: list[Plan] = []
    refused: list[str] = []
    for rule in settings.publisher.rules:
        if rule.drop:
            continue
        try:
            kind = formats.find(rule.format)
            plans.append(Plan(rule, kind, kind.options_type.model_validate(rule.options)))
        except InvalidSettings as error:
            refused.append(f"{rule}: {error}")
        except ValidationError as error:
            for wrong in error.errors():
                path = ".".join(map(str, ("options", *wrong["loc"])))
                refused.append(f"{rule}: {path}: {wrong['msg'].removeprefix('Value error, ')} (format {rule.format})")
    if refused:
        raise InvalidSettings("\n".join(refused))
    return plans


async def check(settings: Settings) -> None:
    """Ask the neighbours that formats need whether they serve. Raises what `Format.check` does."""
    for each in plan(settings):
        await asyncio.to_thread(each.kind.check, each.options)


async def open_outputs(
    settings: Settings, plans: list[Plan], start: Start, producer: Producer, topics: Topics
) -> dict[int, Output]:
    """Make the formats of a generation, and their own topics; by the number of the rule."""
    # the first host, wherever the reader is: messages follow from the configuration and the events alone
    login = settings.source.login(settings.source.hosts[0])
    source = MessageSource(settings.name, start.flavor, login.host, login.port)
    outputs: dict[int, Output] = {}
    for each in plans:
        own_lanes: dict[str, Lane] = {}
        output = outputs[each.rule.number] = Output(each, source, own_lanes)
        for topic in output.format.topics():
            await topics.ensure(topic, partitions=1)
            own_lanes[topic] = producer.lane(topic, 0, await topics.limit(topic))
        if each.kind.open is not Format.open:
            await asyncio.to_thread(output.format.open)
    return outputs
