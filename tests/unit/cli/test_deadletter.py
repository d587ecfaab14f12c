"""`databus deadletter` on records of a dead-letter topic in memory."""

import argparse
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import pytest
from aiokafka import TopicPartition

from databus_cli import deadletter
from databus_core.dead_letters import DeadLetter
from databus_core.errors import PoisonError
from databus_core.kafka_dead_letters import Letter, Letters
from databus_core.settings import Settings

PARTITION = TopicPartition("databus.deadletter.p", 0)
LETTER = DeadLetter(
    reason="too_large", error="too large", topic="p.shop.t", partition=0, schema="shop", table="t", action="insert",
    gtid="0-1-7", file="log.1", start=4, end=90, transaction=1, row=0, size=9, time=0,
)  # fmt: skip


class Record(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]


class Topic:
    """A fake consumer, with the records of its topic in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.end = 0
        self._position = 0

    def add(self, key: bytes, value: bytes | None, headers: list[tuple[str, bytes]]) -> None:
        self.records.append(Record(self.end, key, value, headers))
        self.end += 1

    def add_letter(self, row: int) -> None:
        letter = msgspec.structs.replace(LETTER, row=row)
        self.add(letter.id, b"value", letter.headers())

    def compact(self) -> None:
        """Delete each record for which there is a later one with the same key."""
        self.records = list({record.key: record for record in self.records}.values())

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._position = offset

    async def position(self, partition: TopicPartition) -> int:
        return self._position

    async def getmany(self, *partitions: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[Record]]:
        found = [record for record in self.records if record.offset >= self._position]
        self._position = self.end
        return {PARTITION: found}


class Replay:
    """A fake replay: accepts each letter except those of the rows in `refused`."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.refused: set[int] = set()

    async def send(self, letter: Letter, value: bytes) -> str:
        assert value == b"value"
        if letter.about.row in self.refused:
            return "its topic does not accept it"
        self.sent.append(letter.about.row)
        return ""


class Command(NamedTuple):
    run: Callable[..., tuple[int, str, list[str]]]
    topic: Topic
    replay: Replay
    #: called after the command has read the pending letters
    before_replay: list[Callable[[], None]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    topic, replay, before_replay = Topic(), Replay(), list[Callable[[], None]]()

    @asynccontextmanager
    async def open_letters(_settings: Settings) -> AsyncIterator[Letters]:
        consumer: Any = topic
        yield Letters(consumer, PARTITION, 0, topic.end)

    @asynccontextmanager
    async def open_replay(_settings: Settings, _to: str | None) -> AsyncIterator[Replay]:
        for step in before_replay:
            step()
        yield replay

    monkeypatch.setattr(deadletter, "load", lambda _: Settings(name="p"))
    monkeypatch.setattr(deadletter, "open_letters", open_letters)
    monkeypatch.setattr(deadletter, "open_replay", open_replay)

    def run(action: str) -> tuple[int, str, list[str]]:
        code = deadletter.run(argparse.Namespace(config=None, action=action, json=True, to=None))
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode().splitlines()

    return Command(run, topic, replay, before_replay)


def rows(out: str) -> list[int]:
    return [json.loads(line)["row"] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("reason", "size", "is_tombstone"),
    [("skipped", 0, True), ("no_topic", 0, True), ("skipped", 9, False), ("unencodable", 0, False)],
)
def test_a_record_without_value_is_a_tombstone_if_it_was_made(reason: Any, size: int, *, is_tombstone: bool) -> None:
    assert msgspec.structs.replace(LETTER, reason=reason, size=size).is_tombstone == is_tombstone


def test_letters_are_listed_in_the_order_of_their_latest_records(command: Command) -> None:
    for row in (1, 2, 1, 3):
        command.topic.add_letter(row)
    command.topic.add(msgspec.structs.replace(LETTER, row=2).id, None, [])
    assert rows(command.run("list")[1]) == [1, 3]


def test_a_record_that_is_not_a_letter_is_an_error_until_a_tombstone_discards_it(command: Command) -> None:
    command.topic.add_letter(1)
    command.topic.add(b"other", b"", [("reason", b"unknown")])
    with pytest.raises(
        PoisonError, match=r"cannot be read: .* \(offset 1 of databus\.deadletter\.p\): write a tombstone"
    ):
        command.run("list")
    command.topic.add(b"other", None, [])
    assert rows(command.run("list")[1]) == [1]
    assert command.run("replay") == (0, "", ["databus: replayed: 1, left: 0"])


def test_letters_that_cannot_be_replayed_are_left(command: Command) -> None:
    for row in (1, 2):
        command.topic.add_letter(row)
    command.replay.refused = {1}
    code, _, notices = command.run("replay")
    assert (code, command.replay.sent) == (1, [2])
    assert notices == ["databus: shop.t at log.1:4: its topic does not accept it", "databus: replayed: 1, left: 1"]


def test_a_letter_that_was_compacted_away_is_not_counted_as_replayed(command: Command) -> None:
    for row in (1, 2):
        command.topic.add_letter(row)
    command.before_replay[:] = [lambda: command.topic.add_letter(1), command.topic.compact]
    code, _, notices = command.run("replay")
    assert (code, command.replay.sent) == (1, [2])
    assert notices == [
        "databus: shop.t at log.1:4: a newer record has replaced the dead letter meanwhile; run the command again",
        "databus: replayed: 1, left: 1",
    ]
