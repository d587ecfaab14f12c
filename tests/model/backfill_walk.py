"""Random walks through backfills, doubts and faults, with two hosts, two readers and two publishers."""

from collections.abc import Callable, Collection
from random import Random

from model.backfill_changes import KEYED, KEYLESS, KEYS, TABLES
from model.backfill_consumer import Consumer
from model.backfill_pipe import Mode, Request, Stage
from model.backfill_publisher import Kafka, Publisher
from model.backfill_reader import Reader
from model.backfill_rules import RULES, UNNEEDED
from model.backfill_source import Source
from model.world import Violated

#: limit of rounds for everything to be published and backfilled after the faults have stopped
_ROUNDS = 150
#: number of rounds in which the source still changes
_CHANGES = 8


class Walk:
    """A world, and the steps that change it. The same seed and rules take the same walk."""

    def __init__(self, seed: int, rules: frozenset[str]) -> None:
        self._random = random = Random(seed)
        self._draw = random.choice
        self._rules = rules
        #: whether tables are created, dropped and renamed
        renames = random.random() < 0.25
        #: tables that change and are backfilled before the faults stop
        alone: tuple[tuple[str, ...], ...] = (TABLES, KEYED[:1], KEYED[:1], (KEYED[0], KEYLESS), (KEYLESS,))
        self._tables = random.choice((KEYED, KEYED, TABLES, KEYED[:1]) if renames else alone)
        self._source = Source(random, self._tables)
        for _ in range(random.randint(0, 10)):
            self._source.commit()
        start = len(self._source.transactions)
        self._source.names = self._draw((0.1, 0.3)) if renames else 0
        for _ in range(random.randint(0, 4)):
            self._source.commit()
        loaded = {table: self._draw((KEYS, -1) if table == KEYLESS else (KEYS, KEYS, -1, -1, 3)) for table in TABLES}
        self._kafka = Kafka(Consumer(self._source, start=start, loaded=loaded))
        #: share of the second reader and the second publisher in the steps
        self._share = random.choice((0, 0, 0.1, 0.5))
        for table in self._tables:
            if loaded[table] == 3 or random.random() < 0.7:
                self._send(table, Stage.RUNNING)
        self._publishers = [Publisher(self._kafka, rules)] * 2
        self._readers = [Reader(self._kafka, self._source, self._draw((0, 1)), rules) for _ in range(2)]
        #: steps, and how often they are taken
        self._steps = {step: weight * random.choice((0.3, 1, 1, 3)) for step, weight in self._work().items()}
        self._steps |= {step: weight * random.choice((0, 0, 1, 3)) for step, weight in self._events().items()}

    def _work(self) -> dict[Callable[[], None], float]:
        return {
            self._commit: 4,
            self._replicate: 4,
            self._show: 6,
            self._read: 10,
            self._backfill: 16,
            self._publish: 5,
            self._obey: 2,
            self._follow: 2,
        }

    def _events(self) -> dict[Callable[[], None], float]:
        return {
            self._request: 2,
            self._change_request: 1,
            self._start_reader: 0.3,
            self._fail_over: 0.4,
            self._refuse: 1,
            self._start_publisher: 0.3,
            self._skip: 1,
        }

    def run(self, steps: int) -> None:
        """Take this number of steps, then stop all faults, and finish. Raises Violated."""
        for step in self._random.choices(list(self._steps), list(self._steps.values()), k=steps):
            step()
        self._finish()

    def _finish(self) -> None:
        """Load the tables, with one reader, and verify that they are complete and equal to the source."""
        self._kafka.refused.clear()
        for table in TABLES:
            if not self._heals(table) or self._random.random() < 0.5:
                self._send(table, Stage.RUNNING)
        for publisher in self._publishers:
            publisher.renew()
        reader = Reader(self._kafka, self._source, self._draw((0, 1)), self._rules)
        self._start_publisher()
        for rounds in range(_ROUNDS):
            if rounds < _CHANGES:
                self._commit()
                self._replicate()
                self._show()
            else:
                self._source.catch_up()
            if reader.attached():
                if reader.stopped:
                    self._kafka.skip(reader.stopped.number)
                reader.follow()
                reader.obey()
                for table in TABLES:
                    reader.read()
                    reader.open(table)
                    reader.select(table, self._draw((0, 1)), self._draw((1, 2, 3)))
                    reader.find_end(table)
            for publisher in self._publishers:
                publisher.commit(9)
                publisher.renew()
            if self._finished():
                return
        raise Violated(f"not finished: {self._kafka.consumer.states}")

    def _finished(self) -> bool:
        consumer, requests = self._kafka.consumer, self._kafka.requests
        states = consumer.states
        begun = all(states[table].request == requests[table].number for table in requests if table in consumer.tables)
        return begun and all(state.stage.ended for state in states.values()) and consumer.equal()

    def _heals(self, table: str) -> bool:
        """Whether a table will be loaded without a further request, because of a doubt."""
        state, request = self._kafka.consumer.states[table], self._kafka.requests.get(table)
        begun = request is None or request.number == state.request
        return begun and state.mode is Mode.PARKED and state.stage in (Stage.NONE, Stage.DONE)

    def _commit(self) -> None:
        self._source.commit()

    def _replicate(self) -> None:
        for _ in range(self._draw((1, 2, 4))):
            self._source.replicate()

    def _show(self) -> None:
        host = self._draw(self._source.hosts)
        for _ in range(self._random.randint(0, len(host.log) - host.shown)):
            host.show()

    def _reader(self) -> Reader:
        return self._readers[self._place()]

    def _publisher(self) -> Publisher:
        return self._publishers[self._place()]

    def _place(self) -> int:
        """Return which of two readers or publishers takes a step."""
        return int(self._random.random() < self._share)

    def _read(self) -> None:
        reader = self._reader()
        if reader.attached():
            for _ in range(self._draw((1, 2, 3, 5))):
                reader.read()

    def _backfill(self) -> None:
        """Do some of what the next chunks of a table need."""
        reader, random, table = self._reader(), self._random, self._draw(self._tables)
        if reader.attached():
            if random.random() < 0.6:
                reader.open(table)
            if random.random() < 0.6:
                reader.select(table, self._draw((0, 1)), self._draw((1, 2, 3)))
            if random.random() < 0.6:
                reader.find_end(table)

    def _obey(self) -> None:
        reader = self._reader()
        if reader.attached():
            reader.obey()

    def _follow(self) -> None:
        reader = self._reader()
        if reader.attached():
            reader.follow()

    def _fail_over(self) -> None:
        self._reader().detach(self._draw((0, 1)))

    def _publish(self) -> None:
        publisher = self._publisher()
        publisher.commit(self._draw((0, 1, 2, 5)))
        if self._random.random() < 0.9:
            publisher.renew()

    def _start_reader(self) -> None:
        """Replace a reader after kill -9, maybe on the other host."""
        self._readers[self._place()] = Reader(self._kafka, self._source, self._draw((0, 1)), self._rules)

    def _start_publisher(self) -> None:
        self._publishers[self._place()] = Publisher(self._kafka, self._rules)

    def _refuse(self) -> None:
        """Let Kafka refuse a table from now on, or accept it again."""
        self._kafka.refused ^= {self._draw(self._tables)}

    def _skip(self) -> None:
        """Skip the transaction at which a reader has stopped, or another one."""
        reader, log = self._reader(), self._draw(self._source.hosts).log
        if reader.stopped or (log and self._random.random() < 0.3):
            self._kafka.skip((reader.stopped or self._draw(log)).number)

    def _request(self) -> None:
        self._send(self._draw(self._tables), self._draw((Stage.RUNNING, Stage.RUNNING, Stage.PAUSED)))

    def _send(self, table: str, desired: Stage) -> None:
        old = self._kafka.requests.get(table)
        number = old.number + 1 if old else 1
        self._kafka.requests[table] = Request(number, desired, clean=self._random.random() < 0.5)

    def _change_request(self) -> None:
        table = self._draw(self._tables)
        request = self._kafka.requests.get(table)
        if request and request.desired is not Stage.CANCELLED:
            desired = self._draw((Stage.RUNNING, Stage.PAUSED, Stage.CANCELLED))
            self._kafka.requests[table] = request._replace(desired=desired)


def search(walks: int, *, without: Collection[str] = (), steps: int = 100, first: int = 0) -> None:
    """Take this number of walks, the same ones in every run. Raises Violated, with the walk's seed in a note."""
    rules = frozenset({*RULES, *UNNEEDED}.difference(without))
    for seed in range(first, first + walks):
        try:
            Walk(seed, rules).run(steps)
        except Violated as error:
            error.add_note(f"walk {seed}")
            raise
