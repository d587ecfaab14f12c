"""Kafka with a single KRaft node, from Maven's artifacts, run by the machine's Java."""

import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from devstack import cache, jars
from devstack.engine import Instance
from devstack.programs import run
from devstack.server import Kind, NotReadyError, Say, Server, require_listening

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={data}
auto.create.topics.enable=true
group.initial.rebalance.delay.ms=0
# A killed broker may register again only when its old session is over; the default is 9 s.
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
# An idle controller writes a record every half second, by default.
metadata.max.idle.interval.ms=0
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
_LISTENERS = """\
listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller},BEHIND://127.0.0.1:{behind}
# Clients that connect through a proxy must be sent back to it: a proxy on `front` forwards to `behind`.
advertised.listeners=PLAINTEXT://127.0.0.1:{client},BEHIND://127.0.0.1:{front}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,BEHIND:PLAINTEXT
"""


class Kafka:
    """A Kafka broker that is its own controller.

    Its ports, in order: for clients, for the controller, for a proxy to forward to, for that proxy to listen on.
    """

    kind: Kind = "kafka"
    user = ""
    ports = 3
    proxies = 1
    timeout = 120.0

    def install(self, say: Say) -> Path:
        """Fetch the jars and format a log directory."""
        libraries = fetch(say)

        def build(folder: Path) -> None:
            say("formatting a log directory")
            (folder / "jars").symlink_to(libraries)
            format_log(folder / "jars", configure(folder, _listeners((9092, 9093, 9094, 9095)), 9093, folder / "data"))

        return cache.installed(libraries.name.replace("jars-", ""), build)

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Write server.properties and build the command line."""
        properties = configure(instance.folder, _listeners(instance.ports), instance.ports[1], instance.data)
        return [*jvm(installation / "jars"), "kafka.Kafka", str(properties)]

    async def ping(self, server: Server) -> None:
        """Request the cluster's brokers; there are none before the broker has joined its controller."""
        client: Any = AIOKafkaAdminClient(bootstrap_servers=server.url, request_timeout_ms=5000)
        try:
            await require_listening(server)  # the client logs an error if it cannot connect
            await client.start()
            if not (await client.describe_cluster())["brokers"]:
                raise NotReadyError("the broker has not joined its controller")
        except (OSError, KafkaError) as error:
            raise NotReadyError(str(error)) from error
        finally:
            await client.close()


def fetch(say: Say) -> Path:
    """Fetch the jars and return their folder."""
    jars.java("Kafka", say)
    return jars.resolve(jars.POMS / "kafka.xml", say)


def jvm(libraries: Path, *options: str) -> list[str]:
    """Return the start of a command line: Java with Kafka's jars and with further `options` of Java."""
    # A heap of fixed size, as in Kafka's own script: while a heap grows, each large request triggers a collection.
    heap = ("-Xms512m", "-Xmx512m")
    logging = f"-Dlog4j2.configurationFile={jars.POMS / 'kafka-log4j2.xml'}"
    return [jars.java("Kafka"), *heap, logging, *options, "-cp", f"{libraries}/*"]


def configure(folder: Path, listeners: str, controller: int, data: Path) -> Path:
    """Write server.properties; `listeners` are the lines about listeners, `controller` is the controller's port."""
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(controller=controller, data=data) + listeners)
    return properties


def format_log(libraries: Path, properties: Path, *options: str) -> None:
    """Format the log directory of a configuration; `options` are those of kafka-storage."""
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    tool = [*jvm(libraries), "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", *options]
    run("formatting Kafka's log directory", [*tool, "--config", str(properties)])


def _listeners(ports: tuple[int, ...]) -> str:
    return _LISTENERS.format(**dict(zip(("client", "controller", "behind", "front"), ports, strict=True)))
