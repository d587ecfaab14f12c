"""`databus dump messages`: a dump's rows as records of other formats."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest
import zstandard
from aiokafka import AIOKafkaProducer

from common.connections import Execute
from databus_cli.__main__ import main
from databus_core import names
from databus_core.events import Column, Table
from databus_core.kafka_history import encode_table
from devstack import Server
from integration.dump_api import Api, path_of, serving

pytestmark = pytest.mark.mysql_in_slow


@asynccontextmanager
async def listening(api: Api) -> AsyncIterator[Callable[..., Awaitable[int]]]:
    """Serve the API on a socket; yields a function that runs `databus dump messages` against it."""
    async with serving(api) as url:
        yield lambda *arguments: asyncio.to_thread(main, ["dump", "messages", *arguments, "--url", url])


async def test_a_dump_is_printed_as_records_of_other_formats(
    api: Api, schema: str, execute: Execute, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    await execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10))")
    await execute("INSERT INTO a VALUES (1, 'one'), (2, NULL), (3, 'three')")
    await execute("CREATE TABLE b (id INT PRIMARY KEY)")
    await execute("CREATE TABLE größe (id INT NOT NULL UNIQUE)")
    await execute("INSERT INTO größe VALUES (1), (2)")
    manifest = await api.take_dump()
    created = int(datetime.fromisoformat(manifest["created"]).timestamp())

    async with listening(api) as run:

        async def print_dump(*arguments: str) -> list[dict[str, Any]]:
            assert await run(manifest["id"], *arguments) == 0
            out, err = capfdbinary.readouterr()
            assert err == b""
            return [json.loads(line) for line in out.splitlines()]

        lines = await print_dump("--format", "debezium-json")
        assert [line["key"]["payload"]["id"] for line in lines] == [1, 2, 3, 1, 2]
        values = [line["value"]["payload"] for line in lines]
        assert [(value["op"], value["source"]["table"], value["after"]["id"]) for value in values] == [
            ("r", "a", 1),
            ("r", "a", 2),
            ("r", "a", 3),
            ("r", "größe", 1),
            ("r", "größe", 2),
        ]
        markers = ["first", "true", "last_in_data_collection", "first_in_data_collection", "last"]
        assert [value["source"]["snapshot"] for value in values] == markers
        assert {value["source"]["pos"] for value in values} == {manifest["position"]["offset"]}
        assert {value["source"]["name"] for value in values} == {schema}

        values = [line["value"] for line in await print_dump("--format", "maxwell-json", "--tables", "*.a", "*.b")]
        assert [(value["table"], value["type"], value["data"].get("id")) for value in values] == [
            ("a", "bootstrap-start", None),
            ("a", "bootstrap-insert", 1),
            ("a", "bootstrap-insert", 2),
            ("a", "bootstrap-insert", 3),
            ("a", "bootstrap-complete", None),
            ("b", "bootstrap-start", None),
            ("b", "bootstrap-complete", None),
        ]
        assert {value["ts"] for value in values} == {created}
        await execute("DROP TABLE a, b, größe")
        assert (await api.delete(f"/v1/dumps/{manifest['id']}")).status_code == 204  # no lease is left


async def test_a_dump_has_the_declared_types_of_the_schema_history(
    api: Api, schema: str, kafka: Server, execute: Execute, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The stream takes them from the statements; information_schema has only the stored types."""
    await execute("CREATE TABLE t (flag BOOL, altered BOOL, j JSON)")
    columns = (
        Column(name="flag", type="tinyint", raw_type="tinyint(1)", declared="BOOL"),
        Column(name="altered", type="int", raw_type="int(11)"),
        Column(name="j", type="longtext", raw_type="longtext", declared="JSON"),
    )
    history = encode_table(Table(schema=schema, name="t", columns=columns))
    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
        await producer.send_and_wait(names.schema_topic(api.settings.name), history, names.schema_key(schema, "t"))
    await execute("INSERT INTO t VALUES (TRUE, TRUE, '{}')")
    manifest = await api.take_dump()
    async with listening(api) as run:
        assert await run(manifest["id"], "--format", "debezium-json") == 0
    (line,) = capfdbinary.readouterr().out.splitlines()
    value = json.loads(line)["value"]
    fields = next(field["fields"] for field in value["schema"]["fields"] if field["field"] == "after")
    assert [field.get("name", field["type"]) for field in fields] == ["boolean", "int16", "io.debezium.data.Json"]
    assert value["payload"]["after"] == {"flag": True, "altered": 1, "j": "{}"}


async def test_a_dump_that_cannot_be_printed_is_refused_with_one_line(
    serve: Callable[..., Any], execute: Execute, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, f FLOAT, mail TEXT)")
    await execute("INSERT INTO t VALUES (1, 0.1, NULL)")
    rules = [{"match": ["*.t"], "format": "databus", "options": {"compat": "strict"}, "mask": ["mail"]}]
    async with serve(publisher={"routes": rules}) as api, listening(api) as run:

        async def refusal(dump: str, *arguments: str) -> str:
            assert await run(dump, "--format", "dip", *arguments) == 1
            out, err = capfdbinary.readouterr()
            assert (out, err.count(b"\n")) == (b"", 1)
            return err.decode()

        manifest = await api.take_dump()
        assert "t were written with compat: strict" in await refusal(manifest["id"])
        assert "has none of the selected tables" in await refusal(manifest["id"], "--tables", "no.*")
        assert "404: there is no dump 1" in await refusal("1")
        await execute("ALTER TABLE t DROP COLUMN mail")
        failed = await api.take_dump(state="failed")
        assert f"dump {failed['id']} is failed, not complete: publisher.routes: rule 1" in await refusal(failed["id"])


async def test_files_in_other_formats_have_the_printed_records(
    serve: Callable[..., Any], schema: str, execute: Execute, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    await execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10), d DECIMAL(5,2))")
    await execute("INSERT INTO a VALUES (1, 'one', 1.50), (2, NULL, NULL)")
    await execute("CREATE TABLE b (id INT PRIMARY KEY)")
    await execute("CREATE TABLE c (id INT PRIMARY KEY, t TIME(6))")
    await execute("INSERT INTO c VALUES (1, '-838:59:59'), (2, '0:0:0.5')")
    formats = ["debezium-json", "maxwell-json", "canal-json"]
    async with serve(dumps={"formats": ["jsonl", *formats]}) as api:
        manifest = await api.take_dump()
        assert manifest["formats"] == ["jsonl", *formats]
        async with listening(api) as run:
            for each in formats:
                assert await run(manifest["id"], "--format", each) == 0
                printed, _ = capfdbinary.readouterr()
                files = [file for file in manifest["files"] if file["format"] == each]
                contents = [(await api.get(path_of(manifest, file["name"]))).content for file in files]
                assert records(b"".join(map(unzip, contents))) == records(printed)
                assert sum(file["rows"] for file in files) == 4
                assert files[0]["name"] == f"{schema}.a.00001.{each}.zst"


async def test_tables_with_compat_strict_have_no_files_in_other_formats(
    serve: Callable[..., Any], execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    routes = [{"match": ["*.*"], "options": {"compat": "strict"}}]
    async with serve(dumps={"formats": ["jsonl", "canal-json"]}, publisher={"routes": routes}) as api:
        failed = await api.take_dump(state="failed")
    assert "t: compat: strict loses information that canal-json needs" in failed["error"]


def records(lines: bytes) -> list[Any]:
    """Parse lines, without the times at which the records were made."""
    found = [json.loads(line) for line in lines.splitlines()]
    for record in found:
        made = record["value"].get("payload", record["value"])
        if "type" not in made or "bootstrap" not in made["type"]:  # Maxwell's `ts` is the dump's
            for name in ("ts", "ts_ms", "ts_us", "ts_ns"):
                made.pop(name, None)
    return found


def unzip(content: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(content)
