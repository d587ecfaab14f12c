"""A model of the hand-over: random walks of readers, publishers, a forgetful Redis and a fencing Kafka.

The publisher's decision is the real one (`Acceptance`). After every step what is committed must be whole source
transactions, each once, equal to the progress. Leaving a rule out must be noticed: a model that cannot fail proves
nothing.
"""

import random
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

from databus.errors import GenerationLost
from databus.pipe import Acceptance, Entry

ROWS = 2
#: two hosts that hold the same transactions in another order: a failover changes what comes next
HOSTS = ((1, 2, 3, 4), (2, 1, 3, 4))
Item = tuple[int, int]  # transaction, row; row == ROWS is its end


@dataclass
class Redis:
    token: bytes = b""
    claim: bytes = b""
    start: frozenset[int] = frozenset()
    following: int = 0
    stream: list[tuple[Entry, Item]] = field(default_factory=list)


@dataclass
class Reader:
    token: bytes = b""
    claim: bytes = b""
    number: int = 0
    todo: list[Item] = field(default_factory=list)


@dataclass
class Publisher:
    epoch: int
    acceptance: Acceptance | None = None
    #: committed its progress once more, and so may open a generation
    unfenced: bool = False
    progress: frozenset[int] = frozenset()


class World:
    """All actors; `without` names the rules left out."""

    def __init__(self, seed: int, without: set[str]) -> None:
        self.random = random.Random(seed)
        self.without = without
        self.redis, self.backup = Redis(), Redis()
        self.readers: list[Reader | None] = [None, None]
        self.publishers: list[Publisher | None] = [None, None]
        self.epoch = 0
        self.sent: list[Item] = []  # into the open Kafka transaction
        self.committed: list[Item] = []
        self.progress: frozenset[int] = frozenset()

    def token(self) -> bytes:
        return self.random.randbytes(8)

    def step(self) -> None:
        chance, actor = self.random.random(), self.random.randrange(2)
        if chance < 0.03:
            self.redis = deepcopy(self.backup)  # loses its last writes
        elif chance < 0.06:
            self.backup = deepcopy(self.redis)
        elif chance < 0.07:
            self.redis = Redis()
        elif chance < 0.09:
            self.readers[actor] = None
        elif chance < 0.11:
            self.publishers[actor] = None
        elif chance < 0.55:
            self.reader_step(actor)
        else:
            self.publisher_step(actor)

    def reader_step(self, actor: int) -> None:
        reader = self.readers[actor]
        if reader is None:
            if self.random.random() < 0.15:
                self.readers[actor], self.redis.token = Reader(), b""  # retire
        elif not reader.claim:
            if self.redis.token and not self.redis.claim:
                reader.token, reader.claim = self.redis.token, self.token()
                self.redis.claim = reader.claim
                host = self.random.choice(HOSTS)
                reader.todo = [(t, row) for t in host if t not in self.redis.start for row in range(ROWS + 1)]
        elif reader.todo:
            self.append(reader)

    def append(self, reader: Reader) -> None:
        held = (self.redis.token, self.redis.claim, self.redis.following) == (reader.token, reader.claim, reader.number)
        if not held and "refusal" not in self.without:
            reader.claim = b""
            return
        entry = Entry(reader.token, reader.claim, reader.number, b"")
        self.redis.stream.append((entry, reader.todo.pop(0)))
        reader.number += 1
        self.redis.following = reader.number

    def publisher_step(self, actor: int) -> None:
        publisher = self.publishers[actor]
        if publisher is None:
            if self.random.random() < 0.15:
                self.epoch += 1  # InitProducerId: fences the others, aborts what they left open
                self.sent = []
                self.publishers[actor] = Publisher(self.epoch, progress=self.progress)
        elif publisher.unfenced:
            # A slow one may open after it was replaced: what it takes then, it cannot commit.
            publisher.unfenced, publisher.acceptance = False, Acceptance(self.token())
            self.redis = Redis(token=publisher.acceptance.token, start=publisher.progress)
        elif publisher.epoch != self.epoch and "fencing" not in self.without:
            self.publishers[actor] = None
        elif publisher.acceptance is None or publisher.acceptance.token != self.redis.token:
            if "abort" not in self.without:
                self.sent = []
            publisher.unfenced = True
        else:
            self.take(publisher, publisher.acceptance)

    def take(self, publisher: Publisher, acceptance: Acceptance) -> None:
        found = next(((e, i) for e, i in self.redis.stream if e.number >= acceptance.next), None)
        if found is None:
            return
        entry, (transaction, row) = found
        try:
            if "acceptance" not in self.without:
                acceptance.accept(entry)
            else:
                acceptance.next = entry.number + 1
        except GenerationLost:
            self.redis.token = b""
            return
        self.redis.stream = [(e, i) for e, i in self.redis.stream if e.number > entry.number]
        if row < ROWS:
            self.sent.append((transaction, row))
        if row == ROWS or "boundary" in self.without:
            self.committed += self.sent
            self.sent = []
        if row == ROWS:
            publisher.progress = self.progress = publisher.progress | {transaction}

    def violation(self) -> bool:
        whole = [(t, row) for t in sorted(self.progress) for row in range(ROWS)]
        return sorted(self.committed) != whole


def violations(walks: int, without: set[str]) -> tuple[int, int]:
    """Count violated and finished walks."""
    violated = finished = 0
    for seed in range(walks):
        world = World(seed, without)
        for _ in range(600):
            world.step()
            if world.violation():
                violated += 1
                break
        finished += len(world.progress) == len(HOSTS[0])
    return violated, finished


def test_nothing_is_lost_or_invented_whatever_breaks() -> None:
    violated, finished = violations(800, set())
    assert violated == 0
    assert finished > 50


def test_the_check_at_the_receiving_end_suffices() -> None:
    assert violations(800, {"refusal"})[0] == 0


@pytest.mark.parametrize("rules", [{"acceptance", "refusal"}, {"fencing"}, {"abort"}, {"boundary"}], ids=" and ".join)
def test_the_model_notices_when_a_rule_is_left_out(rules: set[str]) -> None:
    assert violations(400, rules)[0] > 0
