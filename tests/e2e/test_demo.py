"""The demo with reader and publisher killed under load: the lake still equals the database."""

import asyncio
import re
from contextlib import aclosing
from pathlib import Path

from rich.console import Console

from devstack import Stack
from devstack.demo import observe
from devstack.demo.scenario import Demo
from devstack.pipeline import Pipeline, Service

VICTIMS: tuple[Service, ...] = ("publisher", "reader", "reader", "publisher")


async def kill_by_turns(pipeline: Pipeline) -> None:
    """Kill and restart a service each time the progress in Kafka shows that more transactions were published."""
    victims, published = list(VICTIMS), 0
    async with aclosing(observe.progress(pipeline)) as records:
        async for record in records:
            if record["transaction"] > published:
                published, victim = record["transaction"], victims.pop(0)
                await asyncio.to_thread(pipeline.kill, victim)
                pipeline.spawn(victim)
            if not victims:
                return


async def test_every_table_is_equal_after_reader_and_publisher_are_killed(devstack: Stack, tmp_path: Path) -> None:
    result = await Demo(devstack, tmp_path / "demo", Console(), kill_by_turns).run(1500)
    assert [comparison.table for comparison in result.comparisons if not comparison.equal] == []
    assert all(comparison.rows > 0 for comparison in result.comparisons)
    assert all(logged > 0 for logged in result.changes.values())
    sink = next((tmp_path / "demo").rglob("spark-sink.log")).read_text()
    ours = re.compile(r"20\d\d-\d\d-\d\dT|NOTE: Picked up JDK_JAVA_OPTIONS|WARNING: Using incubator modules")
    assert [line for line in sink.splitlines() if not ours.match(line)] == [], "Spark's log, or Java's"
