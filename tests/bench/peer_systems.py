"""The compared systems: each is started on one binlog file of a server, and writes table bench.t to one Kafka topic."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from environment import Environment, create, pipeline_of
from peer_canal import canal
from peer_debezium import TUNED, debezium
from peer_maxwell import maxwell
from peer_programs import Running, require_alive

from devstack import Server


@dataclass(frozen=True)
class System:
    """A system to compare."""

    #: as in `publisher.format`
    format: str
    #: starts the system at the beginning of a binlog file of the server, and ends it after the block
    start: Callable[[Server, str, Environment], AbstractContextManager[Running]]
    #: share of the records that come before the clock starts: Java programs are slow until their code is compiled
    warm_up: float = 0.5
    #: for ours, the systems that write the same format
    peers: tuple[str, ...] = ()


@contextmanager
def ours(server: Server, file: str, env: Environment, *, message_format: str) -> Iterator[Running]:
    """Our reader, publisher and Redis. The publisher is ready when the reader starts, so that nothing is read ahead."""
    options = {"schemas_enable": False} if message_format == "debezium-json" else {}
    publisher = {"format": message_format, "options": options}
    with pipeline_of(server, env, f"{file}:4", publisher) as pipeline:
        topic = f"{pipeline.name}.bench.t"
        create(env.kafka, topic)
        Path(f"/proc/{env.pids['redis']}/clear_refs").write_text("5")  # Redis's peak memory counts from now on
        publishing = pipeline.spawn("publisher")
        pipeline.wait("publisher")
        processes = {"publisher": publishing, "reader": pipeline.spawn("reader")}

        def check() -> None:
            for service, process in processes.items():
                require_alive(service, process, pipeline.log(service))

        pids = {service: process.pid for service, process in processes.items()} | {"redis": env.pids["redis"]}
        yield Running(topic, pids, pipeline.home, check)


def _ours(message_format: str, *peers: str) -> System:
    return System(message_format, partial(ours, message_format=message_format), warm_up=0, peers=peers)


SYSTEMS = {
    "Debezium": System("debezium-json", debezium),
    "Debezium, tuned": System("debezium-json", partial(debezium, connector=TUNED)),
    "ours, debezium-json": _ours("debezium-json", "Debezium", "Debezium, tuned"),
    "Maxwell": System("maxwell-json", maxwell),
    "ours, maxwell-json": _ours("maxwell-json", "Maxwell"),
    "canal": System("canal-json", canal),
    "ours, canal-json": _ours("canal-json", "canal"),
    "ours, databus": _ours("databus"),
}
