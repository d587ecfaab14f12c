"""Tables whose topics collide, on a real Redis and Kafka: only the second one waits, in the dead-letter topic."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import TopicPartition
from msgspec.structs import replace

from common.pipelines import Consume
from databus_core.errors import InvalidSettings
from databus_core.events import Action, DatabaseEvent, StateRecord, Table, TableDefinition
from databus_core.kafka_client import admin, consumer
from databus_core.kafka_topics import create_topic
from databus_core.names import SEQUENCE_HEADER
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.table_states import TableDoubt, doubt_key, encode
from databus_publisher import service
from integration.publisher_in_process import ITEMS, Run, Source

FIRST, SECOND = replace(ITEMS, schema="c_cs", name="order_items"), replace(ITEMS, schema="c_cs_order", name="items")


async def insert(source: Source, table: Table, *ids: int) -> None:
    """Insert rows in a transaction of its own."""
    event = source.insert(*((n, 1) for n in ids))
    await source.commit(TableDefinition(table), replace(event, table=table.fingerprint))


def ids(messages: list[dict[str, Any]]) -> list[int]:
    return [int(row[0]) for message in messages for row in message["Rows"]]


async def test_only_the_table_whose_topic_kafka_refuses_waits(
    configured: Callable[..., Settings], run: Run, changes: Consume, dead_letters: Any
) -> None:
    settings = configured()
    published = await changes(f"{settings.name}.c_cs.order_items")
    publisher, source = await run(settings)
    await insert(source, FIRST, 1)
    await insert(source, SECOND, 2, 3)
    await insert(source, FIRST, 4)
    assert ids(await published.until(2)) == [1, 4]
    await publisher.stop()
    with pytest.raises(InvalidSettings, match=r"c_cs_order\.items has no topic: .* escape_names"):
        await service.check(settings, Health())
    publisher, source = await run(settings)  # a restart changes nothing
    await insert(source, SECOND, 5)
    await insert(source, FIRST, 6)
    assert ids(await published.until(1)) == [6]
    _, letters, _ = await dead_letters("list", "--json")
    assert [(letter["reason"], letter["table"], letter["value"]) for letter in letters] == [
        ("no_topic", "items", True)
    ] * 2
    assert "publisher.escape_names" in letters[0]["error"]
    code, _, err = await dead_letters("replay")
    assert code == 1
    assert "publisher.escape_names" in err

    await publisher.stop()
    settings = configured(routes=[{"match": ["c_cs_order.*"], "escape_names": True}, {"match": ["*.*"]}])
    escaped = await changes(f"{settings.name}.c-5fcs-5forder.items")
    assert await dead_letters("replay") == (0, [], "databus: replayed: 2, left: 0\n")
    assert ids(await escaped.until(2)) == [2, 3, 5]
    _, source = await run(settings)
    await insert(source, SECOND, 7)
    await insert(source, FIRST, 8)
    assert ids(await escaped.until(1)) == [7]
    assert ids(await published.until(1)) == [8]


async def test_the_table_that_came_first_keeps_its_topic_also_after_a_restart(
    configured: Callable[..., Settings], run: Run, changes: Consume, dead_letters: Any
) -> None:
    debezium = {"format": "debezium-json", "options": {"schemas_enable": False, "provide_transaction_metadata": True}}
    settings = configured(topic="{name}_{schema}_{table}", **debezium)
    publisher, source = await run(settings)
    await insert(source, SECOND, 1)  # comes first, although its name is sorted behind the other's
    await insert(source, FIRST, 2)
    await source.wait_until_published()
    await publisher.stop()
    publisher, source = await run(settings)
    await insert(source, FIRST, 3)
    key_change = replace(source.rows(Action.UPDATE, [b"3", b"x"], [b"4", b"x"]), table=FIRST.fingerprint)
    await source.commit(key_change)
    await insert(source, SECOND, 4)
    await source.wait_until_published()
    _, letters, _ = await dead_letters("list", "--json")
    found = [(letter["table"], letter["action"], letter["bytes"] > 0) for letter in letters]
    assert found == [
        ("order_items", "insert", True),
        ("order_items", "insert", True),
        ("order_items", "update", True),
        ("order_items", "update", False),  # a tombstone
        ("order_items", "update", True),
    ]
    new_key = {"__debezium.newkey": '{"id":4}'}
    headers = [
        about_key | {SEQUENCE_HEADER: f"{transaction:016}-0000000000"}
        for transaction, about_key in [
            (2, {}),
            (3, {}),
            (4, new_key),
            (4, new_key),
            (4, {"__debezium.oldkey": '{"id":3}'}),
        ]
    ]
    assert [letter["record_headers"] for letter in letters] == headers
    assert (await dead_letters("replay"))[0] == 1  # not into the other table's topic

    await publisher.stop()
    configured(topic="{name}_{schema}.{table}", escape_names=True, **debezium)
    escaped = f"{settings.name}_c-5fcs.order-5fitems"
    await changes(escaped)
    assert await dead_letters("replay") == (0, [], "databus: replayed: 5, left: 0\n")
    async with consumer(settings.kafka) as reading:
        reading.assign([TopicPartition(escaped, 0)])
        await reading.seek_to_beginning()
        records = [await reading.getone() for _ in range(5)]
    assert [record.value and json.loads(record.value)["op"] for record in records] == ["c", "c", "d", None, "c"]
    assert [{name: value.decode() for name, value in record.headers} for record in records] == headers


async def test_ddl_on_a_database_whose_topic_kafka_refuses_waits_too(
    configured: Callable[..., Settings], run: Run, dead_letters: Any
) -> None:
    settings = configured(format="canal-json")
    publisher, source = await run(settings)
    await insert(source, replace(ITEMS, schema="c", name="cs"), 1)  # its topic is, for Kafka, that of database c_cs
    await insert(source, replace(ITEMS, schema="c.cs", name="t"), 1)
    await insert(source, replace(ITEMS, schema="c_cs", name="t"), 1)  # has no topic
    dropped = replace(ITEMS, schema="c_cs", name="t").fingerprint
    for action, tables in (Action.CREATE, ()), (Action.DROP, (dropped,)):
        statement = f"{action} DATABASE c_cs".encode()
        await source.commit(DatabaseEvent("c_cs", action, statement, 4, 90, None, tables))
    await source.wait_until_published()
    _, letters, _ = await dead_letters("list", "--json")
    found = [(letter["table"], letter["action"], letter["reason"]) for letter in letters]
    expected = ("t", "insert"), ("", "create"), ("t", "drop"), ("", "drop")
    assert found == [(*each, "no_topic") for each in expected]
    _, _, err = await dead_letters("replay")
    assert f"for Kafka, {settings.name}.c_cs is the same as {settings.name}.c.cs, the topic of c.cs" in err

    await publisher.stop()
    settings = configured(format="canal-json", escape_names=True)
    _, source = await run(settings)
    await source.commit(DatabaseEvent("c_cs", Action.CREATE, b"CREATE DATABASE c_cs", 4, 90, None))
    await insert(source, replace(ITEMS, schema="c_cs", name="t"), 2)
    await source.wait_until_published()
    assert await dead_letters("replay") == (0, [], "databus: replayed: 4, left: 0\n")
    for topic, sql in (".t", ["", "", "drop"]), ("", ["CREATE", "create", "drop"]):
        async with consumer(settings.kafka) as reading:
            reading.assign([TopicPartition(f"{settings.name}.c-5fcs{topic}", 0)])
            await reading.seek_to_beginning()
            messages = [json.loads((await reading.getone()).value) for _ in sql]
        assert [message["sql"].partition(" ")[0] for message in messages] == sql


async def test_a_format_that_frames_transactions_frames_only_what_is_published(
    configured: Callable[..., Settings], run: Run, dead_letters: Any
) -> None:
    settings = configured(format="canal-protobuf", oversize="split")
    _, source = await run(settings)
    await insert(source, FIRST, 1)
    both = source.insert((2, 1), (3, 1)), source.insert((4, 1), first=2)
    events = [replace(event, table=table.fingerprint) for event, table in zip(both, (SECOND, FIRST), strict=True)]
    await source.commit(TableDefinition(SECOND), *events)
    await source.wait_until_published()
    _, letters, _ = await dead_letters("list", "--json")
    assert [(letter["table"], letter["row"]) for letter in letters] == [("items", 0)]  # both rows in one letter
    async with consumer(settings.kafka) as reading:
        reading.assign([TopicPartition(f"{settings.name}.c_cs.order_items", 0)])
        await reading.seek_to_beginning()
        assert len([await reading.getone() for _ in range(6)]) == 6  # begin, insert and end of each transaction


async def test_a_table_whose_topic_kafka_refuses_to_create_is_parked_until_there_is_one(
    configured: Callable[..., Settings], run: Run, changes: Consume, dead_letters: Any
) -> None:
    settings = configured(topic_settings={"retention.ms": "no number"})
    topic = f"{settings.name}.{{}}.{{}}".format
    async with admin(settings.kafka) as client:
        await create_topic(client, topic("c_cs", "order_items"), 1, {}, -1)
        _, source = await run(settings)
        await insert(source, ITEMS, 1)
        await source.claim()  # the generation ends: the reader has to know of the report
        await insert(source, FIRST, 2)
        published = await changes(topic("c_cs", "order_items"))
        assert ids(await published.until(1)) == [2]
        _, letters, _ = await dead_letters("list", "--json")
        [letter] = letters
        assert (letter["reason"], letter["table"]) == ("parked", "items")
        assert f"Kafka refused to create topic {topic('shop', 'items')}: " in letter["error"]
        await create_topic(client, topic("shop", "items"), 1, {}, -1)
    taken_over = TableDoubt(state="parked", reason="topic_refused", text="", file="log.1", offset=4, since_us=1)
    states = taken_over, replace(taken_over, state="filling"), None
    records = [StateRecord(doubt_key("shop", "items"), encode(each) if each else None) for each in states]
    await source.commit(*records[:2], source.insert((3, 1)), records[2])
    loaded = await changes(topic("shop", "items"))
    assert ids(await loaded.until(1)) == [3]
    _, letters, _ = await dead_letters("list", "--json")
    assert letters == []
