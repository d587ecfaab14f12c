"""Traces of a pipeline: one for each entry of the pipe, with spans of both services; the collector may be away."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from common.collector import Collector, Received, collecting
from common.connections import printing
from common.pipelines import Consume, MakePipeline
from common.waiting import eventually
from devstack import Server
from devstack.pipeline import Pipeline


@pytest.fixture
def source(mariadb: Server) -> Server:
    return mariadb


def start(pipeline: Pipeline) -> None:
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    pipeline.wait("reader")


async def trace_of(collector: Collector, contents: Mapping[str, object]) -> dict[str, Received]:
    """Wait for all spans of the entry that has these contents; return them by name."""

    async def complete() -> dict[str, Received]:
        traces = [span.trace for span in collector.spans if contents.items() <= span.attributes.items()]
        found = {span.name: span for span in collector.spans if span.trace in traces}
        return found if "databus.commit" in found else {}

    return await eventually(complete, seconds=30)


async def test_a_transaction_has_a_trace_and_a_collector_that_hangs_holds_nothing(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume
) -> None:
    with collecting() as collector:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_TIMEOUT": "300",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_BSP_MAX_QUEUE_SIZE": "4",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "1",
        }
        pipeline = make_pipeline(source, schema, environment=environment)
        async with printing(source) as run:
            await run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, body TEXT)")
            await asyncio.to_thread(start, pipeline)
            consumer = await changes(f"{pipeline.name}.{schema}.t")
            await run(f"INSERT INTO {schema}.t VALUES (1, 'confidential'), (2, 'confidential'), (3, NULL)")
            ((gtid,),) = await run("SELECT @@last_gtid")
            assert gtid
            (message,) = await consumer.until(1)
            check_trace(await trace_of(collector, {"databus.gtid": gtid.decode()}), pipeline, message)
            assert b"databus.rows" in collector.raw
            assert b"confidential" not in collector.raw

            collector.answers.clear()
            for number in range(8):  # more spans than the queue has room for
                await run(f"INSERT INTO {schema}.t VALUES ({number + 10}, NULL)")
                await consumer.until(1)
        for service in ("reader", "publisher"):
            begun = time.monotonic()
            await asyncio.to_thread(pipeline.stop, service)
            assert time.monotonic() - begun < 8
            log = pipeline.log(service).read_text()
            assert " stopped: " in log
            assert "Queue full, dropping Span" in log
            assert log.count("library") < 3


def check_trace(spans: Mapping[str, Received], pipeline: Pipeline, message: Mapping[str, Any]) -> None:
    """Check the trace of an entry with one transaction of three rows, whose first record is this message."""
    read, publish, commit = (spans[f"databus.{stage}"] for stage in ("read", "publish", "commit"))
    assert (read.parent, publish.parent, commit.parent) == ("", read.span, publish.span)
    assert read.begun < publish.begun < commit.begun < commit.ended
    assert read.begun < read.ended < commit.ended

    assert {span.resource["service.name"] for span in spans.values()} == {"databus-reader", "databus-publisher"}
    assert {span.resource["databus.pipeline"] for span in spans.values()} == {pipeline.name}
    shared = {key: read.attributes[key] for key in ("databus.generation", "databus.entry")}
    assert shared.items() <= publish.attributes.items()
    assert f"generation={shared['databus.generation']}" in pipeline.log("publisher").read_text()
    assert read.attributes["databus.transactions"] == 1
    assert read.attributes["databus.rows"] == 3
    file, _, offset = read.attributes["databus.position"].partition(":")
    assert file == message["Key"]["Pos"]["Name"]
    assert int(offset) > message["Key"]["Pos"]["Pos"]
    assert commit.attributes["messaging.system"] == "kafka"
    assert commit.attributes["databus.transaction.last"] >= read.attributes["databus.transaction.last"]
