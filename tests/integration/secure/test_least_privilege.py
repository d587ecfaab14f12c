"""A pipeline with exactly the privileges that docs/operations/security.md lists, and the secrets it must not leak."""

import asyncio
import json
import secrets
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest
from redis.asyncio import Redis

from common.connections import connected
from common.pipelines import MakePipeline
from common.privileges import listed
from common.waiting import eventually
from databus_cli.__main__ import main
from databus_core.kafka_client import admin as admin_of
from databus_core.settings import Kafka
from devstack import Server, Stack
from devstack.pipeline import Pipeline, Service
from integration.dump_api import Api

_SERVICES: tuple[Service, ...] = ("publisher", "reader", "dump-api")
SECRETS = {each: f"geheim-{secrets.token_hex(8)}" for each in ("database", "redis", "api")}
#: Kafka's codes
_RESOURCES = {"--topic": 2, "--group": 3, "--cluster": 4, "--transactional-id": 5}
_OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Describe": 8, "DescribeConfigs": 10}
_LITERAL, _PREFIX, _ALLOW = 3, 4, 3


@pytest.fixture(scope="module")
def kafka(own: Stack) -> Server:
    return own.start("kafka-secure")


@pytest.fixture
async def acls(kafka: Server) -> AsyncIterator[AIOKafkaAdminClient]:
    async with admin_of(Kafka(bootstrap_servers=[kafka.url])) as admin:
        # Once something is allowed to anybody on all resources, nothing is allowed to others.
        for resource in _RESOURCES.values():
            name = "kafka-cluster" if resource == _RESOURCES["--cluster"] else "*"
            await allow(admin, resource, name, _LITERAL, "User:nobody", _OPERATIONS["Describe"])
        yield admin


async def allow(admin: AIOKafkaAdminClient, *acl: Any) -> None:
    """Add an ACL: resource type, name, pattern type, principal, operation."""
    *resource, principal, operation = acl
    answer = await admin._send_request(CreateAclsRequest(*resource, principal, "*", operation, _ALLOW))
    assert [code for code, _ in answer.creation_responses] == [0]


async def grant(
    pipeline: Pipeline, schema: str, source: Server, redis: Server, acls: AIOKafkaAdminClient, account: str
) -> None:
    """Grant what the page lists; `account` is that of the database."""
    async with connected(source) as execute:
        for statement in listed("sql", pipeline.name, schema):
            await execute(statement.replace("PASSWORD", SECRETS["database"]).replace("databus@", f"{account}@"))
    async with Redis.from_url(redis.url) as client:
        [line] = listed("redis", pipeline.name, schema)
        await client.execute_command(*line.replace("PASSWORD", SECRETS["redis"]).split())
    for command in listed("sh", pipeline.name, schema):
        words = shlex.split(command)
        pairs = list(pairwise(words))
        [(option, name)] = [pair for pair in pairs if pair[0] in _RESOURCES]
        for operation in [value for key, value in pairs if key == "--operation"]:
            await allow(acls, _RESOURCES[option], name, _PREFIX, "User:databus", _OPERATIONS[operation])


async def contents(kafka: Server, redis: Server, pipeline: Pipeline) -> AsyncIterator[tuple[str, bytes]]:
    """Yield what is in Kafka and in Redis, and where."""
    async with AIOKafkaConsumer(bootstrap_servers=kafka.url, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic for topic in await consumer.topics() if pipeline.name in topic])
        while records := await consumer.getmany(timeout_ms=3000):
            for partition, found in records.items():
                for record in found:
                    headers = b"".join(value for _, value in record.headers)
                    yield f"topic {partition.topic}", (record.key or b"") + (record.value or b"") + headers
    async with Redis.from_url(redis.url) as client:
        async for key in client.scan_iter():
            kind = await client.type(key)
            reads = {b"string": client.get, b"hash": client.hgetall, b"stream": client.xrange}
            yield f"key {key}", repr((key, await reads[kind](key))).encode()


def own_contents(pipeline: Pipeline) -> Iterator[tuple[str, bytes]]:
    """Yield what the services write and show, and the process list."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            yield f"command line of {process.name}", (process / "cmdline").read_bytes()
    for service in _SERVICES:
        yield f"log of {service}", pipeline.log(service).read_bytes()
        yield f"metrics of {service}", pipeline.get(service, "/metrics").content
    for path in (pipeline.home / "dumps").rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()


async def test_the_services_need_no_more_than_the_page_lists_and_leak_no_secret(
    make_pipeline: MakePipeline,
    mariadb: Server,
    schema: str,
    own: Stack,
    kafka: Server,
    acls: AIOKafkaAdminClient,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    redis, account = own.start("redis"), f"least_{secrets.token_hex(4)}"
    for name, secret in SECRETS.items():
        (tmp_path / name).write_text(secret)
    login = json.loads((own.home / "kafka-secure/scram.json").read_text())
    keys = [{"name": "test", "scopes": ["read", "write"], "key_file": str(tmp_path / "api")}]
    pipeline = make_pipeline(
        replace(mariadb, user=account, password=SECRETS["database"]),
        schema,
        kafka=login,
        redis={"url": redis.url, "username": "databus", "password_file": str(tmp_path / "redis")},
        dumps={"api_keys": keys, "api_key_file": str(tmp_path / "api")},
        log={"level": "debug"},
    )
    await grant(pipeline, schema, mariadb, redis, acls, account)
    async with connected(mariadb) as execute:
        await execute(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
        await asyncio.to_thread(pipeline.start_all, *_SERVICES)
        await execute(f"INSERT INTO {schema}.t VALUES (1)")
    bearer = {"Authorization": f"Bearer {SECRETS['api']}"}
    async with Api(base_url=pipeline.url("dump-api"), headers=bearer) as api:
        manifest = await api.take_dump(f"{schema}.t")
        assert await api.rows(manifest, f"{schema}.t") == [[b"1"]]
        lease = f"/v1/dumps/{manifest['id']}/leases"
        assert (await api.post(lease)).status_code == HTTPStatus.CREATED
        [backfill] = (await api.post("/v1/backfills", json={"tables": [f"{schema}.t"]})).json()["backfills"]

        async def is_done() -> bool:
            return (await api.get(f"/v1/backfills/{backfill['id']}")).json()["state"] == "done"

        await eventually(is_done)
    assert await asyncio.to_thread(main, ["check", "--json", "--config", str(pipeline.config)]) == 0
    assert '"wrong"' not in capfd.readouterr().out
    hidden = [secret.encode() for secret in (*SECRETS.values(), login["sasl"]["password"])]
    seen = [each async for each in contents(kafka, redis, pipeline)] + list(own_contents(pipeline))
    assert len(seen) > len(_SERVICES) * 3
    assert [where for where, content in seen if any(each in content for each in hidden)] == []
