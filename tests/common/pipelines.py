"""Pipelines for tests, and a consumer of their topics."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer

from devstack.pipeline import Pipeline, Service
from devstack.process import tail
from devstack.server import DevstackError

MakePipeline = Callable[..., Pipeline]
#: runs a service with a configuration file and further arguments to its end; returns its exit code and its output
RunService = Callable[..., Awaitable[tuple[int, str]]]


class Changes:
    """Reads a pipeline's topics as a consumer with `read_committed` does."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def until(self, count: int) -> list[dict[str, Any]]:
        """Read at least `count` messages. Return each as `decoded` does."""
        found: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(60):
                while len(found) < count:
                    for records in (await self._consumer.getmany(timeout_ms=500)).values():
                        found += [decoded(record) for record in records]
        except TimeoutError as error:
            raise AssertionError(f"{len(found)} of {count} messages came: {found}") from error
        return found

    async def rest(self) -> tuple[list[dict[str, Any]], bool]:
        """Read what has come. Return it, each as `decoded` does, and whether there is more."""
        batches = await self._consumer.getmany(timeout_ms=100)
        found = [decoded(record) for records in batches.values() for record in records]
        ends = await self._consumer.end_offsets(list(self._consumer.assignment()))
        behind = [partition for partition, end in ends.items() if await self._consumer.position(partition) < end]
        return found, bool(behind)


def decoded(record: Any) -> dict[str, Any]:
    """Return the value, with the key and the partition as `Key` and `Partition`, and without base64."""
    message = json.loads(record.value)
    message["Key"] = json.loads(record.key)
    message["Partition"] = record.partition
    if "Rows" in message:
        message["Rows"] = [[b64decode(c) if isinstance(c, str) else c for c in row] for row in message["Rows"]]
    elif "Query" in message:
        message["Query"] = b64decode(message["Query"]).decode()
    return message


Consume = Callable[..., Awaitable[Changes]]


async def run_until_idle(pipeline: Pipeline, in_doubt: str = "") -> None:
    """Publish what is in the binlog now: reader and publisher run with `--until-idle`.

    Neither may fail, except the reader because of a table that is in doubt at the end.
    """
    services: tuple[Service, ...] = ("reader", "publisher")
    for service in services:
        pipeline.spawn(service, "--until-idle")
    for service in services:
        try:
            await asyncio.to_thread(pipeline.wait_ended, service, 120)
        except DevstackError as error:  # if one has failed, the other waits for it without a word
            raise AssertionError("\n".join(tail(pipeline.log(each)) for each in services)) from error
        *_, last = pipeline.log(service).read_text().splitlines()
        doubt = f" reader failed: everything in the binlog is published, except of tables in doubt: {in_doubt} ("
        assert (doubt if in_doubt and service == "reader" else f" {service} stopped: ") in last, last


def upserted(found: list[dict[str, Any]]) -> dict[bytes, bytes]:
    """Apply the messages as a consumer does that keeps the rows by their key."""
    rows: dict[bytes, bytes] = {}
    for each in found:
        match each["Action"]:
            case "truncate":
                rows.clear()
            case "delete":
                for row in each["Rows"]:
                    del rows[row[0]]
            case "insert":
                rows |= {row[0]: row[1] for row in each["Rows"]}
            case "update":
                rows |= {row[0]: row[1] for row in each["Rows"][1::2]}
    return rows
