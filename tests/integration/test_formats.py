"""All formats but debezium-avro at once: one pipeline writes the same changes for each kind of consumer."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from common.connections import Execute
from common.pipelines import MakePipeline
from databus_core.names import SEQUENCE_HEADER
from databus_messages.formats.canal_protocol_pb2 import Entry, EntryType, Messages, Packet
from devstack import Server

Read = Callable[[str, int], Awaitable[list[tuple[Any, Any]]]]

_ROUTES: dict[str, dict[str, object]] = {
    "databus": {},
    "canal-json": {},
    "canal-protobuf": {},
    "debezium-json": {"schemas_enable": False, "provide_transaction_metadata": True, "prefix": "dbz"},
    "maxwell-json": {"output_xoffset": True, "output_ddl": True, "ddl_kafka_topic": "DDL"},
    "tdsql": {},
    "dip": {},
}


@pytest.fixture
async def read(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, kafka: Server) -> Read:
    """Publish some changes in all formats of `_ROUTES`; returns a function that reads the first records of a topic."""
    own = {"prefix": f"dbz-{schema}", "ddl_kafka_topic": f"ddl-{schema}"}
    routes = [
        {"match": ["*.*"], "output": name, "format": name, "topic": f"{{name}}.{name}"}
        | {"options": options | {key: value for key, value in own.items() if key in options}}
        for name, options in _ROUTES.items()
    ]
    pipeline = make_pipeline(source, schema, publisher={"routes": routes})
    await execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    await execute("CREATE TABLE u (id INT PRIMARY KEY)")
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher")
    await execute("BEGIN")
    await execute("INSERT INTO t VALUES (1, 'Anne'), (2, NULL)")
    await execute("INSERT INTO u VALUES (1)")
    await execute("COMMIT")
    await execute("UPDATE t SET id = 3 WHERE id = 2")
    await execute("ALTER TABLE t ADD COLUMN c INT")

    async def records(topic: str, count: int) -> list[tuple[Any, Any]]:
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka.url, group_id=None, isolation_level="read_committed")
        await consumer.start()
        try:
            partition = TopicPartition(topic.format(name=pipeline.name, **own), 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            async with asyncio.timeout(60):
                found = [await consumer.getone() for _ in range(count)]
        finally:
            await consumer.stop()
        sequences = [dict(record.headers)[SEQUENCE_HEADER] for record in found]
        assert sequences == sorted(sequences)
        assert {sequence[:17] for sequence in sequences} <= {b"%016d-" % transaction for transaction in (1, 2, 3)}
        return [(as_json(record.key), as_json(record.value)) for record in found]

    return records


def as_json(content: bytes | None) -> Any:
    try:
        return content and json.loads(content)
    except ValueError:
        return content


async def test_each_consumer_reads_the_same_changes_in_its_own_format(read: Read, source: Server) -> None:
    values = [value for _, value in await read("{name}.databus", 4)]
    assert [value["Action"] for value in values] == ["insert", "insert", "update", "alter"]

    values = [value for _, value in await read("{name}.canal-json", 4)]
    assert [value["type"] for value in values] == ["INSERT", "INSERT", "UPDATE", "ALTER"]
    assert values[0]["data"] == [{"id": "1", "name": "Anne"}, {"id": "2", "name": None}]
    assert values[2]["old"] == [{"id": "2"}]

    entries = [entry for _, packet in await read("{name}.canal-protobuf", 8) for entry in entries_of(packet)]
    begin, rows, end = EntryType.TRANSACTIONBEGIN, EntryType.ROWDATA, EntryType.TRANSACTIONEND
    assert [entry.entryType for entry in entries] == [begin, rows, rows, end, begin, rows, end, rows]

    records = await read("{name}.debezium-json", 6)
    assert [(key["id"], value and value["op"]) for key, value in records] == [
        *((1, "c"), (2, "c"), (1, "c")),
        *((2, "d"), (2, None), (3, "c")),
    ]
    ids = {value["transaction"]["id"] for _, value in records[:3]}
    assert len(ids) == 1
    (_, opened), (_, closed), *_ = await read("{prefix}.transaction", 2)
    assert (opened["status"], closed["status"], closed["event_count"]) == ("BEGIN", "END", 3)
    assert {opened["id"], closed["id"]} == ids
    [(_, altered)] = await read("{prefix}", 1)
    assert altered["ddl"].endswith("ADD COLUMN c INT")

    one, two, three, four = [value for _, value in await read("{name}.maxwell-json", 4)]
    assert one["xid"] == two["xid"] == three["xid"] != four["xid"]
    assert [value.get("commit") for value in (one, two, three, four)] == [None, None, True, True]
    assert (one["xoffset"], two["xoffset"], four["old"]) == (0, 1, {"id": 2})
    [(_, altered)] = await read("{ddl_kafka_topic}", 1)
    assert [len(altered[side]["columns"]) for side in ("old", "def")] == [2, 3]

    values = [value for _, value in await read("{name}.tdsql", 10)]
    assert [value["eventtypestr"] for value in values] == [
        *("gtid", "insert", "insert", "insert", "xid", "gtid", "update", "xid", "gtid", "query")
    ]
    assert {value["localport"] for value in values} == {source.port}

    values = [value for _, value in await read("{name}.dip", 5)]
    assert [value.get("TYPE") or value["type"] for value in values] == ["I", "I", "I", "U", "ALTER"]
    assert values[3]["OLD_VALUES"] == {"id": "2", "name": None}


def entries_of(content: bytes) -> list[Entry]:
    packet = Packet.FromString(content)
    return [Entry.FromString(message) for message in Messages.FromString(packet.body).messages]
