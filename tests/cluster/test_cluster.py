"""The sink as a program on a Spark cluster: the lake is right although an executor is killed, in a folder and on S3."""

import asyncio
import json
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster.servers import SparkCluster, command_lines
from common.object_store import KEY, REGION, SECRET, ObjectStoreServer
from common.spark import FEW_ROWS
from common.waiting import eventually
from databus_core.events import Action
from devstack import Server
from devstack.ports import HOST, free_ports
from devstack.process import ENVIRONMENT
from integration.sink_peers import DumpServer, SamplePublisher, describe_table, serving

INSERT, UPDATE, DELETE, ALTER = Action.INSERT, Action.UPDATE, Action.DELETE, Action.ALTER
ITEMS = describe_table("items", "id int(11)", "name varchar(20)")
COUNTED = describe_table("items", "id int(11)", "name varchar(20)", "stock int(11)")
LINES = describe_table("lines", "id int(11)", "text varchar(20)")
#: what a cluster on one small machine needs
SMALL = FEW_ROWS | {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
}


class Sink:
    """The program, with a configuration file."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.listen = f"{HOST}:{free_ports(1)[0]}"
        settings["spark"] |= {"listen": self.listen, "tables": ["shop.*"]}
        self._config = folder / "databus.yaml"
        self._config.write_text(json.dumps(settings))
        self.log = folder / "sink.log"

    @asynccontextmanager
    async def running(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start the program; it is killed at the end of the block if it still runs then."""
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "databus_spark_sink", *arguments, "--config", str(self._config)]
            env = os.environ | {"JDK_JAVA_OPTIONS": ENVIRONMENT["JDK_JAVA_OPTIONS"]}
            process = await asyncio.create_subprocess_exec(
                *command, env=env, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def has_changes(self) -> bool:
        """Return whether a batch is in the change log, so that mirrors are being written."""
        try:
            async with httpx.AsyncClient() as client:
                metrics = (await client.get(f"http://{self.listen}/metrics")).text
        except httpx.TransportError:
            return False
        return re.search(r"^databus_sink_rows_total{.*} [1-9]", metrics, re.MULTILINE) is not None


@pytest.fixture(params=["file", "s3a"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The settings of a lake."""
    if request.param == "file":
        return {"lake": (tmp_path / "a lake").as_uri(), "conf": SMALL}
    store: ObjectStoreServer = request.getfixturevalue("object_store")
    s3a = {
        "endpoint": store.url,
        "endpoint.region": REGION,
        "path.style.access": True,
        "access.key": KEY,
        "secret.key": SECRET,
    }
    properties = {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}
    return {"lake": f"s3a://lake/{secrets.token_hex(3)}", "conf": SMALL | properties}


async def test_mirrors_are_equal_after_an_executor_was_killed_while_they_were_written(
    cluster: SparkCluster, kafka: Server, jars: Path, lake: dict[str, Any], tmp_path: Path
) -> None:
    name = f"sink-{secrets.token_hex(3)}"
    dumps = DumpServer(tmp_path, name)
    async with serving(dumps) as url, SamplePublisher(name, kafka.url) as publisher:
        rows = dict.fromkeys(range(4000), b"first")
        await publisher.send((ITEMS, INSERT, [[b"1", b"one"]]))
        contents = {ITEMS: [[b"1", b"one"]], LINES: [[b"%d" % key, text] for key, text in rows.items()]}
        offsets = dict(publisher.offsets)
        dumps.manifests.append(dumps.manifest(publisher.position, contents, kafka_offsets=offsets))
        for begin in range(0, 4000, 400):
            images = [[b"%d" % key, text] for key in range(begin, begin + 300) for text in (b"first", b"second")]
            gone = [[b"%d" % key, b"first"] for key in range(begin + 300, begin + 350)]
            await publisher.send((LINES, UPDATE, images), (LINES, DELETE, gone))
            rows |= dict.fromkeys(range(begin, begin + 300), b"second")
            rows = {key: text for key, text in rows.items() if not begin + 300 <= key < begin + 350}
        await publisher.send((COUNTED, ALTER, b"ALTER TABLE items ADD stock int DEFAULT 7"))
        await publisher.send((COUNTED, INSERT, [[b"2", b"two", b"8"]]))
        spark = {"master": cluster.url, "jars": str(jars)} | lake
        sink = Sink(tmp_path, name=name, kafka={"bootstrap_servers": [kafka.url]}, dumps={"url": url}, spark=spark)

        async with sink.running("--until-idle") as loading:
            await eventually(sink.has_changes, seconds=600)
            next(cluster.executors()).kill()
            shown = command_lines()
            assert loading.returncode is None
            assert await loading.wait() == 0, sink.log.read_text()

        contents = {
            COUNTED: [[b"1", b"one", b"7"], [b"2", b"two", b"8"]],
            LINES: [[b"%d" % key, text] for key, text in rows.items()],
        }
        dumps.on_request = [dumps.manifest(publisher.position, contents)]
        async with sink.running("verify") as verifying:
            found, _ = await verifying.communicate()

    assert found.decode().splitlines() == ["shop.items: equal, 2 rows", "shop.lines: equal, 3,500 rows"]
    if secret := lake["conf"].get("spark.hadoop.fs.s3a.secret.key"):
        logs = [sink.log, *cluster.folder.rglob("*.log"), *cluster.folder.rglob("std*")]
        assert not any(secret.encode() in text for text in (*shown, *(log.read_bytes() for log in logs)))
