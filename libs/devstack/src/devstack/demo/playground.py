"""The sample pipeline that `devstack up --services` leaves running."""

import asyncio
from pathlib import Path

from rich.console import Console
from rich.table import Table

from devstack.demo import scenario, shop
from devstack.pipeline import SERVICES, Pipeline, stop_services
from devstack.progress import ProgressDisplay
from devstack.stack import Stack


def start(home: Path) -> None:
    """Start the four services with the shop in MariaDB, and print all addresses.

    Processes that already run, and a shop that already exists, are kept.
    """
    with ProgressDisplay() as progress:
        progress.say("services", "starting reader, publisher, dump-api and spark-sink")
        pipeline = asyncio.run(_start(Stack(home), home))
        progress.say("services", "ready")
    table = Table("", "address")
    for name, address in _addresses(pipeline).items():
        table.add_row(name, address)
    Console().print(table)


async def _start(stack: Stack, home: Path) -> Pipeline:
    source, redis, kafka = stack.start("mariadb"), stack.start("redis"), stack.start("kafka")
    if not await shop.exists(source):
        await shop.create(source)
    overrides = {"spark": {"jars": str(scenario.connectors())}}
    pipeline = Pipeline(_folder(home), source=source, redis=redis, kafka=kafka, overrides=overrides)
    await asyncio.to_thread(pipeline.start_all, *SERVICES)
    return pipeline


def stop(home: Path) -> None:
    """Stop the services of the sample pipeline, and those of a demo that was killed."""
    stop_services(_folder(home))
    stop_services(scenario.pipeline_folder(home))


def _addresses(pipeline: Pipeline) -> dict[str, str]:
    return {
        "MariaDB": pipeline.source.url,
        "Redis": pipeline.redis.url,
        "Kafka": pipeline.kafka.url,
        "operations page": f"{pipeline.url('dump-api')}/",
        "dump-api": f"{pipeline.url('dump-api')}/docs",
        **{f"{service} metrics": f"{pipeline.url(service)}/metrics" for service in SERVICES},
        "lake": str(pipeline.lake),
        "configuration": str(pipeline.config),
    }


def _folder(home: Path) -> Path:
    return home / "pipeline"
