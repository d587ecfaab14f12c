"""Only those tables are parked to whose topics the account may not write."""

import asyncio
import json

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest

from common.connections import Execute
from common.pipelines import Consume, MakePipeline
from databus_cli.__main__ import main
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Server
from integration.secure.settings import Section

#: Kafka's codes
_TOPIC, _LITERAL, _ALLOW = 2, 3, 3
_READ, _WRITE, _DESCRIBE, _DESCRIBE_CONFIGS = 3, 4, 8, 10


async def test_a_table_to_whose_topic_the_account_may_not_write_is_parked_until_it_may(
    make_pipeline: MakePipeline,
    source: Server,
    schema: str,
    execute: Execute,
    changes: Consume,
    sections: dict[str, Section],
    admin: AIOKafkaAdminClient,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It may read one of the topics, and does not even see the other one."""
    tables = "t", "hidden", "other"
    for table in tables:
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema, kafka=sections["scram"])
    topics = {table: f"{pipeline.name}.{schema}.{table}" for table in tables}
    consumers = {table: await changes(topic) for table, topic in topics.items()}
    account = sections["scram"]["sasl"]["username"]

    async def allow(table: str, account: str, *operations: int) -> None:
        for operation in operations:
            acl = _TOPIC, topics[table], _LITERAL, f"User:{account}", "*", operation, _ALLOW
            answer = await admin._send_request(CreateAclsRequest(*acl))
            assert [code for code, _ in answer.creation_responses] == [0]

    await allow("t", account, _READ, _DESCRIBE, _DESCRIBE_CONFIGS)
    await allow("hidden", "somebody", _READ)
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    for table in tables:
        await execute(f"INSERT INTO {table} VALUES (1)")
    assert [message["Rows"] for message in await consumers["other"].until(1)] == [[[b"1"]]]
    texts = {table: doubt.text for (_, table), doubt in (await read_states(load(pipeline.config)))[0].doubts.items()}
    assert texts == {
        table: f"Kafka denies the account WRITE on topic {topics[table]}; grant it" for table in ("t", "hidden")
    }
    assert await asyncio.to_thread(main, ["check", "--json", "--config", str(pipeline.config)]) == 1
    found = {each["what"]: each for each in map(json.loads, capfd.readouterr().out.splitlines())}
    assert found["rights on topics"]["verdict"] == "wrong"
    assert set(found["rights on topics"]["text"].splitlines()) == set(texts.values())
    assert "tables in doubt: 2" in found["tables in doubt"]["text"]
    for table in ("t", "hidden"):
        await allow(table, account, _READ, _WRITE, _DESCRIBE, _DESCRIBE_CONFIGS)
    for table in ("t", "hidden"):
        assert [message["Action"] for message in await consumers[table].until(2)] == ["truncate", "insert"]
