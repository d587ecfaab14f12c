"""The sample pipeline that `up --services` leaves running."""

import asyncio
from pathlib import Path

from devstack.demo import shop, story
from devstack.pipeline import SERVICES, Pipeline, stop_services
from devstack.stack import Stack


async def start(stack: Stack, home: Path) -> Pipeline:
    """Start the four services over a shop in MariaDB; what runs or exists is kept."""
    source, redis, kafka = stack.start("mariadb"), stack.start("redis"), stack.start("kafka")
    if not await shop.exists(source):
        await shop.create(source)
    overrides = {"spark": {"jars": str(story.connectors())}}
    pipeline = Pipeline(_folder(home), source=source, redis=redis, kafka=kafka, overrides=overrides)
    await asyncio.to_thread(pipeline.start_all, *SERVICES)
    return pipeline


def stop(home: Path) -> None:
    """Stop the services, if they run, and those of a demo that was killed."""
    stop_services(_folder(home))
    stop_services(story.pipeline(home))


def addresses(pipeline: Pipeline) -> dict[str, str]:
    """List what a user may look at."""
    return {
        "MariaDB": pipeline.source.url,
        "Redis": pipeline.redis.url,
        "Kafka": pipeline.kafka.url,
        "dump-api": f"{pipeline.url('dump-api')}/docs",
        **{f"{service} metrics": f"{pipeline.url(service)}/metrics" for service in SERVICES},
        "lake": str(pipeline.lake),
        "configuration": str(pipeline.config),
    }


def _folder(home: Path) -> Path:
    return home / "pipeline"
