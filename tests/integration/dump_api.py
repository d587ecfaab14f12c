"""For tests of dump-api: a client, a `Health` that shows when dump-api has started, and helpers that prepare Kafka."""

import asyncio
import json
import socket
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow
import uvicorn
import zstandard
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from pyarrow import parquet

from common.waiting import eventually
from databus_core.runtime import Health
from databus_core.settings import Settings
from devstack import Server

Cells = list[bytes | None]


class Api(httpx.AsyncClient):
    """A client of dump-api. `settings` and `app` are set only if dump-api runs in this process."""

    settings: Settings
    app: Any

    async def take_dump(self, *patterns: str, state: str = "complete") -> dict[str, Any]:
        """Request a dump of these tables (by default all), and require `state` at its end. Return its manifest."""
        answer = await self.post("/v1/dumps", json={"tables": patterns} if patterns else {})
        assert answer.status_code == 202, answer.text
        manifest: dict[str, Any] = {}

        async def ended() -> bool:
            manifest.update((await self.get(answer.headers["Location"])).json())
            return manifest["state"] in ("complete", "failed")

        await eventually(ended)
        assert manifest["state"] == state, manifest["error"]
        return manifest

    async def rows(self, manifest: dict[str, Any], table: str, file_format: str = "jsonl") -> list[Cells]:
        """Download all rows of a table."""
        rows: list[Cells] = []
        for file in manifest["files"]:
            if (file["table"], file["format"]) == (table, file_format):
                content = (await self.get(path_of(manifest, file["name"]))).content
                rows += rows_of_json(content) if file_format == "jsonl" else rows_of_parquet(content)
        return rows


def rows_of_json(content: bytes) -> list[Cells]:
    lines = zstandard.ZstdDecompressor().decompressobj().decompress(content).splitlines()
    return [[None if c is None else b64decode(c) for c in row] for line in lines for row in json.loads(line)["Rows"]]


def rows_of_parquet(content: bytes) -> list[Cells]:
    columns = parquet.read_table(pyarrow.BufferReader(content)).columns
    cells = [column.cast(pyarrow.binary()).to_pylist() for column in columns]
    return [list(row) for row in zip(*cells, strict=True)]


def path_of(manifest: dict[str, Any], name: str) -> str:
    return f"/v1/dumps/{manifest['id']}/files/{quote(name)}"


class StartedHealth(Health):
    """Sets `event` when the service has checked its dependencies.

    Tests wait for it, so that they never cancel aiokafka while it connects.
    """

    def __init__(self) -> None:
        super().__init__()
        self.event = asyncio.Event()

    def up(self, *, host: str = "") -> None:
        super().up(host=host)
        self.event.set()

    def down(self, reason: str) -> None:
        super().down(reason)
        self.event.set()


async def create_topic(kafka: Server, topic: str, partitions: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()


async def produce(kafka: Server, topic: str, *values: bytes, key: bytes = b"key", partition: int = 0) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
        for value in values:
            await producer.send_and_wait(topic, value, key=key, partition=partition)


@asynccontextmanager
async def serving(api: Api) -> AsyncIterator[str]:
    """Serve the API of this process on a socket; yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(api.app, log_config=None, lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[bound]))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        server.should_exit = True
        await task
