"""The code of docs/guide/spark.md runs, and keeps a copy of a table that is equal to the table."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from common.connections import Execute
from common.pipelines import MakePipeline, run_until_idle
from common.spark import leaves_sockets
from databus_core.dump_client import DumpApi
from devstack import Server

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/spark.md").read_text()

pytestmark = leaves_sockets


def test_the_guide_names_the_versions_that_the_sink_uses() -> None:
    pom = (ROOT / "services/spark-sink/pom.xml").read_text()
    for package in re.search(r"packages = (\[.*?\])", GUIDE)[1].strip('["]').split('", "'):
        group, artifact, version = package.split(":")
        assert re.search(
            rf"<groupId>{group}</groupId>\s*<artifactId>{artifact}</artifactId>\s*<version>{version}</version>", pom
        ), package


@pytest.fixture
def source(mariadb: Server) -> Server:
    return mariadb


@pytest.mark.lake
async def test_the_code_of_the_guide_keeps_a_copy(
    spark: SparkSession, make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, tmp_path: Path
) -> None:
    pipeline = make_pipeline(source, schema)
    await execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, status ENUM('open', 'paid'), total DECIMAL(9,2), at TIMESTAMP(3))"
    )
    await run_until_idle(pipeline)
    await execute("SET time_zone = '+00:00'")
    await execute(
        "INSERT INTO orders VALUES (1, 'open', 10.5, '2026-03-29 02:30:00.125'), (2, 'open', 20, NULL), "
        "(3, 'open', 0, NULL)"
    )
    await asyncio.to_thread(pipeline.start_all, "dump-api")
    async with DumpApi(pipeline.url("dump-api"), poll=0.05) as api:
        await api.take([f"{schema}.orders"])
    await execute("UPDATE orders SET status = 'paid', total = total + 1 WHERE id = 1")
    await execute("UPDATE orders SET id = 4 WHERE id = 2")
    await execute("DELETE FROM orders WHERE id = 3")
    await run_until_idle(pipeline)

    names = {
        '"kafka:9092"': f'"{pipeline.kafka.url}"',
        "http://dump-api:8080": pipeline.url("dump-api"),
        '"/data': f'"{tmp_path}',
        "shop.shop.orders": f"{pipeline.name}.{schema}.orders",
        "shop.orders": f"{schema}.orders",
    }
    code = re.sub("|".join(names), lambda match: names[match[0]], GUIDE)
    # test_spark_debezium runs the block about Debezium's topics
    blocks = [each for each in re.findall(r"```python\n(.*?)```", code, re.DOTALL) if "debezium" not in each]
    variables: dict[str, Any] = {}
    for block in blocks:
        await run(block, variables)
    assert variables["orders"].where("_row is not null").count() == 8
    assert copied(spark, tmp_path, "status", "total", "at") == [
        (1, "paid", "11.50", "2026-03-29 02:30:00.125"),
        (4, "open", "20.00", None),
    ]

    await execute("UPDATE orders SET total = 0 WHERE id = 4")
    await execute("ALTER TABLE orders ADD note VARCHAR(9) AFTER id")
    await execute("INSERT INTO orders VALUES (5, 'new', 'paid', 1, NULL)")
    await run_until_idle(pipeline)
    [stream] = [block for block in blocks if "apply_changes(changes" in block]
    with pytest.raises(StreamingQueryException, match="ALTER or RENAME TABLE may change rows that the mirror has"):
        await run(stream, variables)
    assert len(copied(spark, tmp_path)) == 2
    await run(stream.replace("(changes,", "(changes.where(\"_action <> 'alter'\"),"), variables)
    assert copied(spark, tmp_path, "note") == [(1, None), (4, None), (5, "new")]
    assert copied(spark, tmp_path, "total") == [(1, "11.50"), (4, "0.00"), (5, "1.00")]


async def run(code: str, variables: dict[str, Any]) -> None:
    await asyncio.to_thread(exec, code, variables)


def copied(spark: SparkSession, folder: Path, *columns: str) -> list[tuple[Any, ...]]:
    """Read columns of the copy, as text, after the id."""
    copy = spark.read.format("delta").load(f"{folder}/orders")
    return [
        tuple(row) for row in copy.selectExpr("id", *(f"string({name})" for name in columns)).orderBy("id").collect()
    ]
