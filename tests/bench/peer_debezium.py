"""Debezium: Kafka Connect with a connector for MariaDB that starts at the beginning of a binlog file."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import httpx
import pymysql
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic
from environment import Environment
from peer_programs import Running, java, libraries, new, write_properties

from databus_core import kafka_client
from databus_core.settings import Kafka
from devstack import Server
from devstack.ports import HOST, free_ports
from devstack.server import DevstackError

#: seconds for Kafka Connect to start and to accept a connector
_CONNECT_SECONDS = 180
#: What Debezium's users change first for more speed and less latency: larger batches, and shorter pauses between them.
TUNED = {
    "poll.interval.ms": 10,
    "max.batch.size": 8192,
    "max.queue.size": 32768,
    "producer.override.batch.size": 2**18,
    "producer.override.linger.ms": 5,
}


@contextmanager
def debezium(
    server: Server, file: str, env: Environment, *, connector: Mapping[str, object] | None = None
) -> Iterator[Running]:
    """Debezium's connector for MariaDB in Kafka Connect; `connector` has settings that differ from the defaults.

    It is started as if it had read everything before the file.
    """
    name, topic, folder = new("debezium", env)
    position = {"file": file, "pos": 4, "gtids": _gtids(server, file), "row": 0, "event": 0}
    asyncio.run(_write_connect_offset(env.kafka, name, position))
    [port] = free_ports(1)
    worker = write_properties(folder / "worker.properties", _worker(name, env.kafka, port))
    main = ["org.apache.kafka.connect.cli.ConnectDistributed", worker]
    with java(main, topic, folder, f"{libraries('debezium')}/*") as running:
        url = f"http://{HOST}:{port}/connectors/{name}"
        settings = _connector(name, server, env.kafka) | (connector or {})
        _put(f"{url}/config", {key: str(value) for key, value in settings.items()}, running.check)

        def check() -> None:
            running.check()
            tasks = httpx.get(f"{url}/status").json().get("tasks", [])
            if failed := [task for task in tasks if task["state"] == "FAILED"]:
                raise DevstackError(f"Debezium failed: {failed[0]['trace']}")

        yield replace(running, check=check)


def _worker(name: str, kafka: Server, port: int) -> dict[str, object]:
    """Return Kafka Connect's properties: messages are JSON without schemas."""
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": kafka.url,
        "group.id": name,
        "listeners": f"http://{HOST}:{port}",
        "plugin.discovery": "service_load",
        **{f"{part}.storage.topic": f"{name}-{part}" for part in ("offset", "config", "status")},
        **{f"{part}.storage.replication.factor": 1 for part in ("offset", "config", "status")},
        **{f"{part}.storage.partitions": 1 for part in ("offset", "status")},
        **{f"{part}.converter": converter for part in ("key", "value")},
        **{f"{part}.converter.schemas.enable": "false" for part in ("key", "value")},
    }


def _connector(name: str, server: Server, kafka: Server) -> dict[str, object]:
    """Return the connector's settings; `recovery` takes the tables' structure from the server."""
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": server.host,
        "database.port": server.port,
        "database.user": server.user,
        "database.password": server.password,
        "database.ssl.mode": "disable",
        "database.server.id": 5401,
        "topic.prefix": name,
        "table.include.list": "bench.t",
        "snapshot.mode": "recovery",
        "schema.history.internal.kafka.bootstrap.servers": kafka.url,
        "schema.history.internal.kafka.topic": f"{name}-history",
    }


def _put(url: str, settings: dict[str, str], check: Callable[[], None]) -> None:
    """Create a connector, once Kafka Connect accepts requests."""
    until, answer = time.monotonic() + _CONNECT_SECONDS, "it does not listen"
    while time.monotonic() < until:
        check()
        try:
            response = httpx.put(url, json=settings, timeout=60)
            if response.is_success:
                return
            answer = response.text
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise DevstackError(f"Kafka Connect does not accept the connector after {_CONNECT_SECONDS} s: {answer}")


async def _write_connect_offset(kafka: Server, name: str, position: dict[str, object]) -> None:
    """Create the topic in which Kafka Connect keeps offsets, and write the connector's position into it."""
    topic = f"{name}-offset"
    async with kafka_client.admin(Kafka(bootstrap_servers=[kafka.url])) as admin:
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
        key, value = json.dumps([name, {"server": name}], separators=(",", ":")), json.dumps(position)
        await producer.send_and_wait(topic, value.encode(), key.encode())


def _gtids(server: Server, file: str) -> str:
    """Return the GTIDs of the transactions before the file; Debezium does not start without them."""
    with (
        pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT BINLOG_GTID_POS(%s, 4)", (file,))
        return str(cursor.fetchone()[0])
