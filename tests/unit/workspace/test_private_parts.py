"""The private parts of aiokafka and asyncmy that we use still exist.

Any release may change them, so the distributions that use them have an upper bound for the version. If a test fails
after a bound was raised, its message or the failing line names the module to adapt.
"""

import asyncio
import inspect
import re
import socket
import tomllib
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.producer import message_accumulator, sender, transaction_manager
from aiokafka.record import util
from asyncmy.connection import Connection, _MySQLProtocol
from packaging.requirements import Requirement

from databus_binlog.driver import give_back, send, take_over
from databus_core import kafka_client
from databus_core.settings import Kafka
from databus_core.settings.kafka import KafkaSasl
from databus_publisher import producer
from databus_publisher.record_batch import RecordBatch

ROOT = Path(__file__).parents[3]

RECORD_BATCH = "databus_publisher/record_batch.py replaces aiokafka's BatchBuilder"
STOP = "databus/kafka_stop.py ends the tasks of aiokafka's producer and takes the errors that it keeps"
SEND = "databus_binlog/driver.py sends commands through asyncmy's connection"
BROKERS = "databus/kafka_client.py (_brokers) lists the brokers that a client knows"
PROBE = "databus/kafka_errors.py (_probe) connects to a broker"
TAKE_OVER = "databus_binlog/driver.py (take_over, give_back) uses asyncmy's transport and protocol"
SELECT = "databus_binlog/select.py (open_select) reads whether the server ends result sets with OK instead of EOF"


@pytest.mark.parametrize(
    ("member", "extra", "package"),
    [
        ("libs/core", "", "aiokafka"),
        ("services/publisher", "", "aiokafka"),
        ("libs/binlog", "connect", "asyncmy"),
    ],
)
def test_a_distribution_that_uses_private_parts_has_an_upper_bound(member: str, extra: str, package: str) -> None:
    project = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]
    requires = project["optional-dependencies"][extra] if extra else project["dependencies"]
    [requirement] = [one for one in map(Requirement, requires) if one.name == package]
    assert any(specifier.operator == "<" for specifier in requirement.specifier)


async def test_aiokafka_has_the_private_parts_that_the_publisher_uses() -> None:
    called = set(re.findall(r"_builder\.(\w+)\(", inspect.getsource(message_accumulator.MessageBatch)))
    called -= {"append"}  # only for records that aiokafka collects itself
    missing = [name for name in called if not callable(getattr(RecordBatch, name, None))]
    assert not missing, f"{RECORD_BATCH}: it lacks {missing}"
    for name in called:
        theirs, ours = (
            len(inspect.signature(getattr(kind, name)).parameters)
            for kind in (message_accumulator.BatchBuilder, RecordBatch)
        )
        assert theirs == ours, f"{RECORD_BATCH}: aiokafka's {name} has {theirs} parameters, ours {ours}"
    assert "builder" in inspect.signature(message_accumulator.MessageAccumulator.add_batch).parameters, RECORD_BATCH

    assert util.calc_crc32c(b"123456789") == 0xE3069283, "record_batch.py falls back to aiokafka's calc_crc32c"
    handler = inspect.getsource(sender.AddPartitionsToTxnHandler.handle_response)
    assert "return BACKOFF_OVERRIDE" in handler, "producer.py sets how long aiokafka waits for the markers"
    assert sender.BACKOFF_OVERRIDE == producer._RETRY_SECONDS
    kafka = AIOKafkaProducer(bootstrap_servers="127.0.0.1:9")
    assert isinstance(kafka._sender, sender.Sender), STOP
    assert isinstance(kafka._message_accumulator, message_accumulator.MessageAccumulator), STOP
    assert isinstance(kafka._message_accumulator._batches, dict), STOP
    assert "self._drain_waiter = " in inspect.getsource(message_accumulator.MessageBatch), STOP
    assert "self._transaction_waiter = " in inspect.getsource(transaction_manager.TransactionManager), STOP
    assert inspect.iscoroutinefunction(kafka.client.close), STOP
    await kafka.client.close()
    await kafka.stop()


async def test_aiokafka_has_the_private_parts_that_kafka_client_and_kafka_errors_use() -> None:
    producer, consumer, admin = (
        make(bootstrap_servers="127.0.0.1:9") for make in (AIOKafkaProducer, AIOKafkaConsumer, AIOKafkaAdminClient)
    )
    for client in (producer.client, consumer._client, admin._client):
        assert client.cluster.brokers() == set(), BROKERS
    assert inspect.iscoroutinefunction(admin._send_request), "kafka_rights.py sends a request of its own"
    assert inspect.iscoroutinefunction(producer.client.close), "kafka_client.py disconnects a producer that can't stop"
    await producer.client.close()
    await producer.stop()
    await consumer.stop()

    options = kafka_client._connection(
        Kafka(security_protocol="SASL_SSL", sasl=KafkaSasl(mechanism="PLAIN", username="user", password="secret"))
    )
    assert options.keys() <= inspect.signature(create_conn).parameters.keys(), PROBE
    assert inspect.iscoroutinefunction(create_conn), PROBE
    assert callable(AIOKafkaConnection.send), PROBE


async def test_asyncmy_has_the_private_parts_that_databus_binlog_uses() -> None:
    connection = Connection()
    assert hasattr(connection, "_next_seq_id"), SEND
    assert hasattr(connection, "_transport"), TAKE_OVER
    assert hasattr(connection, "_proto"), TAKE_OVER
    assert connection._deprecate_eof is False, SELECT
    assert inspect.iscoroutinefunction(connection.read_packet), "session.py (register) reads the answer to a command"

    ours, servers = socket.socketpair()
    with servers:
        servers.setblocking(False)
        loop = asyncio.get_running_loop()
        connection._transport, connection._proto = await loop.create_connection(lambda: _MySQLProtocol(loop), sock=ours)
        connection._next_seq_id = 7
        send(connection, b"\x15command")
        assert await loop.sock_recv(servers, 100) == b"\x08\0\0\0\x15command", f"{SEND}: as packet 0 of a new command"

        receiver = take_over(connection, Receiver)
        await loop.sock_sendall(servers, b"\x01\0\0\0\0")
        assert await receiver.received == b"\x01\0\0\0\0", TAKE_OVER

        give_back(connection)
        await loop.sock_sendall(servers, b"\x01\0\0\1\0")
        assert await connection._read_bytes(5) == b"\x01\0\0\1\0", TAKE_OVER
        receiver.transport.close()


class Receiver(asyncio.BufferedProtocol):
    """A protocol that receives bytes once."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray(100)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received.set_result(bytes(self._buffer[:nbytes]))
