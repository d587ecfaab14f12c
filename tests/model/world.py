"""All actors and servers, and the invariants that hold after every step."""

from databus_core.progress import Progress
from model.actors import publish, read
from model.memory_kafka import Committed, MemoryKafka
from model.memory_redis import MemoryRedis
from model.source import Source, numbers_in
from model.turns import Actor, Fate

#: limit of turns for a reader and a publisher to agree on a generation and to publish everything
_DRAIN_TURNS = 2000


class Violated(AssertionError):
    """What was committed is wrong, or something was never committed."""


class World:
    """All servers, and up to two readers and two publishers. There are no leases: all four may be active at once."""

    def __init__(self) -> None:
        self.source, self.redis, self.kafka = Source(), MemoryRedis(), self.make_kafka()
        self.replica = self.redis.copy()
        self.readers: list[Actor | None] = [None, None]
        self.publishers: list[Actor | None] = [None, None]
        #: number of commits that were verified
        self._seen = 0
        #: progress of the last verified commit
        self._progress = Progress()
        #: captured transactions that are published, or precede the pipeline's start
        self._reached: set[int] = set()

    def make_kafka(self) -> MemoryKafka:
        return MemoryKafka()

    def start_reader(self, place: int, *, host: int = 0, size: int = 4) -> None:
        self._replace(self.readers, place, Actor(read(self.redis, self.source, host, size)))

    def start_publisher(self, place: int) -> None:
        self._replace(self.publishers, place, Actor(publish(self.redis, self.kafka)))

    def crash(self, actors: list[Actor | None], place: int) -> None:
        self._replace(actors, place, None)

    def run(self, actor: Actor | None, turns: int = 1, fate: Fate = Fate.ANSWERED) -> None:
        """Let an actor send this number of requests: the last one with this fate, the others answered."""
        for left in range(turns, 0, -1):
            if actor is None or actor.error:
                return
            try:
                actor.run(fate if left == 1 else Fate.ANSWERED)
            finally:
                self.verify()

    def run_all(self, turns: int) -> None:
        """Let each actor send this number of requests, in turn. Start reader 0 and publisher 0 if they do not run."""
        for _ in range(turns):
            if self.publishers[0] is None or self.publishers[0].error:
                self.start_publisher(0)
            if self.readers[0] is None or self.readers[0].error:
                self.start_reader(0)
            for actor in (*self.publishers, *self.readers):
                self.run(actor)

    def run_until_opened(self, place: int) -> None:
        """Run a publisher until it has opened another generation."""
        before = self._token()
        for _ in range(50):
            self.run(self.publishers[place])
            if self._token() not in (None, before):
                return
        raise AssertionError("no generation was opened")

    def _token(self) -> bytes | None:
        return next((fields.get(b"token") for fields in self.redis.store.hashes.values()), None)

    def fail_over_redis(self) -> None:
        """Continue with the data of the replica, and with a new replica."""
        self.redis.store = self.replica
        self.replica = self.redis.copy()

    def copy_to_replica(self) -> None:
        self.replica = self.redis.copy()

    def verify(self) -> None:
        """Verify new commits: whole source transactions, each once, in a host's order, matching the progress."""
        for commit in self.kafka.commits[self._seen :]:
            self._verify(commit)
            self._seen += 1

    def drain(self) -> None:
        """Verify that everything is published after the faults have stopped, whatever state earlier actors left."""
        if len(self.source.rows) % 2:
            self.source.rows.append(0)  # the second host catches up
        self.start_reader(0)
        self.start_publisher(0)
        for _ in range(_DRAIN_TURNS):
            self.run_all(1)
            position = self.kafka.progress and self.kafka.progress.position
            if position and numbers_in(position) == set(self.source.order(0)):
                return
        raise Violated(f"after {_DRAIN_TURNS} turns without faults, the progress is still {self.kafka.progress}")

    def end(self) -> None:
        for actors in (self.readers, self.publishers):
            for place in (0, 1):
                self.crash(actors, place)

    def _verify(self, commit: Committed) -> None:
        transactions = list(dict.fromkeys(number for number, _ in commit.rows))
        self._expect(commit, commit.rows == [row for n in transactions for row in self.source.rows_of(n)], "whole")
        self._expect(commit, self._reached.isdisjoint(transactions), "once")
        orders = [[n for n in self.source.order(host) if n in transactions] for host in (0, 1)]
        self._expect(commit, transactions in orders, "in order")
        counted = commit.progress.transaction - self._progress.transaction
        self._expect(commit, counted == len(transactions), "counted")
        if commit.progress.position is None:
            self._expect(commit, not transactions and self._progress.position is None, "with a position")
        else:
            reached = self.source.captured(numbers_in(commit.progress.position))
            before = self._reached
            if self._progress.position is None:
                before = reached.difference(transactions)
                starts = [self.source.captured(start) for start in self.source.starts]
                self._expect(commit, before in starts, "from where a reader started")
            self._expect(commit, reached == before.union(transactions), "equal to the progress")
            self._reached = reached
        self._progress = commit.progress

    def _expect(self, commit: Committed, kept: bool, promise: str) -> None:
        if not kept:
            raise Violated(f"not {promise}: {commit} after {self._progress}")

    def _replace(self, actors: list[Actor | None], place: int, actor: Actor | None) -> None:
        if old := actors[place]:
            old.kill()
        actors[place] = actor
