"""canal, started at the beginning of a binlog file by java/CanalServer.java."""

from collections.abc import Iterator
from contextlib import contextmanager

from environment import Environment
from peer_programs import Running, classes, java, libraries, new, write_properties

from devstack import Server


@contextmanager
def canal(server: Server, file: str, env: Environment) -> Iterator[Running]:
    """canal with flat messages and the other defaults of canal.properties; see CanalServer.java."""
    _, topic, folder = new("canal", env)
    settings = {
        "canal.instance.master.address": f"{server.host}:{server.port}",
        "canal.instance.master.journal.name": file,
        "canal.instance.master.position": 4,
        "canal.instance.dbUsername": server.user,
        "canal.instance.dbPassword": server.password,
        "canal.instance.mysql.slaveId": 5403,
        "canal.instance.filter.regex": r"bench\\.t",
        "canal.mq.topic": topic,
        "canal.mq.flatMessage": "true",
        "canal.mq.canalBatchSize": 50,
        "canal.mq.canalGetTimeout": 100,
        "kafka.bootstrap.servers": env.kafka.url,
        "kafka.acks": "all",
        "kafka.compression.type": "none",
        "kafka.batch.size": 16384,
        "kafka.linger.ms": 1,
        "kafka.max.request.size": 1048576,
        "kafka.buffer.memory": 33554432,
        "kafka.max.in.flight.requests.per.connection": 1,
        "kafka.retries": 0,
    }
    jars = libraries("canal")
    argument = write_properties(folder / "canal.properties", settings)
    with java(["CanalServer", argument], topic, folder, str(classes(jars)), f"{jars}/*") as running:
        yield running
