"""The client: from a topic in format `databus` to Python objects, to their values, and to Arrow.

Each round reads the same topic with each of them, and with a bare consumer, which parses nothing. Figures are rows for
each second of CPU of this process, so that they are those of one core.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from aiokafka import TopicPartition
from environment import environment
from report import Result, report
from rich.progress import track
from served import CONSOLE
from spark import Topic, fill

from databus import Databus
from databus_core import kafka_client

OBJECTS_GOAL, ARROW_GOAL = 200_000, 500_000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=0.5, help="of the workloads (default: %(default)s)")
    options.add_argument("--runs", type=int, default=5)
    chosen = options.parse_args()
    results = []
    with environment() as env:
        for name in ("W1m", "W2"):
            results += speed(name, fill(name, chosen.scale, env), chosen.runs)
    report("client", results)


def speed(name: str, topic: Topic, runs: int) -> list[Result]:
    paces: dict[str, list[float]] = {each: [] for each in READERS}
    for round_ in track(range(runs + 1), f"reading {name}", console=CONSOLE):
        for reader, read in READERS.items():
            seconds = asyncio.run(read(topic))
            if round_:  # the first round warms up Kafka
                paces[reader].append(topic.images / seconds)
    goals = {"objects with values": OBJECTS_GOAL, "Arrow": ARROW_GOAL} if name == "W1m" else {}
    return [Result(f"{name}: {reader}", "rows/CPU s", pace, None, goals.get(reader)) for reader, pace in paces.items()]


async def bare(topic: Topic) -> float:
    """Read the records, and parse nothing. Return the seconds of CPU."""
    ((name, ends),) = topic.end.offsets.items()
    partition = TopicPartition(name, 0)
    async with kafka_client.consumer(topic.settings.kafka) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        begin = time.process_time()
        while await consumer.position(partition) < ends[0]:
            await consumer.getmany(timeout_ms=1000)
        return time.process_time() - begin


async def objects(topic: Topic) -> float:
    return await _until(topic, lambda databus: _images(databus, values=False))


async def with_values(topic: Topic) -> float:
    return await _until(topic, lambda databus: _images(databus, values=True))


async def arrow(topic: Topic) -> float:
    async def images(databus: Databus) -> AsyncIterator[int]:
        async for batch in databus.changes("bench.*", start="earliest").batches():
            yield batch.rows.num_rows

    return await _until(topic, images)


async def _images(databus: Databus, *, values: bool) -> AsyncIterator[int]:
    async for change in databus.changes("bench.*", start="earliest"):
        if change.query is None:
            row = (change.before, change.after) if values else None
            yield 2 if change.action == "update" else 1
            del row


async def _until(topic: Topic, images: Callable[[Databus], AsyncIterator[int]]) -> float:
    """Read until all row images have come. Return the seconds of CPU from the first on, without the connection."""
    found = begin = 0.0
    async with Databus(topic.settings) as databus:
        async for count in images(databus):
            begin = begin or time.process_time()
            found += count
            if found >= topic.images:
                break
        return time.process_time() - begin


READERS: dict[str, Callable[[Topic], Awaitable[float]]] = {
    "bare consumer": bare,
    "objects": objects,
    "objects with values": with_values,
    "Arrow": arrow,
}


if __name__ == "__main__":
    main()
