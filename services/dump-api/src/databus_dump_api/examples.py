"""Examples of answers, for the OpenAPI document."""

from datetime import UTC, datetime

import msgspec

from databus_binlog import Position
from databus_core.events import Column, Table
from databus_core.manifest import (
    DumpEvent,
    DumpFile,
    DumpLease,
    DumpList,
    DumpProgress,
    Manifest,
    PipelineMoment,
    State,
)
from databus_core.pipeline_description import KafkaDescription, PipelineDescription
from databus_core.pipeline_status import PipelineStatus
from databus_core.pipeline_status.lag import PipelineLag
from databus_core.pipeline_status.positions import PipelinePosition
from databus_core.pipeline_status.requests import SkippedTransactions
from databus_core.pipeline_status.services import SourceHost, StreamBacklog
from databus_dump_api.problems import Document

_TOPIC = "shop.shop.orders"
_COLUMNS = (Column(name="id", type="bigint", raw_type="bigint unsigned", unsigned=True),)
_DUMP = Manifest(
    id="20261121T115346Z-3f2a",
    pipeline="shop",
    state=State.COMPLETE,
    created=datetime(2026, 11, 21, 11, 53, 46, tzinfo=UTC),
    completed=datetime(2026, 11, 21, 11, 58, 3, tzinfo=UTC),
    source="mariadb 10.11.14 1",
    position=Position("0-1-4711", "mariadb-bin.000003", 73_218),
    kafka_offsets={_TOPIC: {0: 4700}},
    transaction=4690,
    passed=PipelineMoment(4712, {_TOPIC: {0: 4722}, "databus.deadletter.shop": {0: 0}}),
    rules="5f0c2d9a",
    requested=("shop.*",),
    tables=(Table(schema="shop", name="orders", columns=_COLUMNS, primary_key=(0,)),),
    files=(
        DumpFile(
            name="shop.orders.00001.jsonl.zst",
            table="shop.orders",
            rows=120_000,
            bytes=2_097_152,
            sha256="2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        ),
    ),
)

EXAMPLES: dict[str, msgspec.Struct] = {
    "Manifest": _DUMP,
    "DumpList": DumpList([_DUMP], "MjAyNi0xMS0yMVQxMTo1Mzo0Nis…"),
    "DumpEvent": DumpEvent(_DUMP.id, State.RUNNING, DumpProgress(80_000, 1_398_101, 118_420, 12.5)),
    "DumpLease": DumpLease("9f86d081884c7d65", 60),
    "PipelineDescription": PipelineDescription(
        "shop", KafkaDescription(["kafka:9092"], "PLAINTEXT"), 900.0, "exactly_once", [{"match": ["*.*"]}]
    ),
    "PipelineStatus": PipelineStatus(
        pipeline="shop",
        time=datetime(2026, 11, 21, 11, 58, 4, tzinfo=UTC),
        lag=PipelineLag(seconds=0.012, bytes=4_096),
        freshness={"reader": 0.004, "publisher": 0.012},
        progress=PipelinePosition(
            begins_at=None,
            file="mariadb-bin.000003",
            offset=73_218,
            gtid_set="0-1-4711",
            transaction=4712,
            time="2026-11-21T11:58:03.988Z",
            server="1",
        ),
        source=SourceHost(host="db1:3306"),
        leaders={"reader": "reader-0:1:9f86d081884c7d65", "publisher": None},
        stream=StreamBacklog(backlog_bytes=4_096, limit_bytes=2**28),
        skips=SkippedTransactions(transactions=None),
        tables_in_doubt=[],
        backfills=[],
        ended_backfills=[],
        dead_letters=None,
        errors={"dead_letters": "no answer within 5 s"},
    ),
    "Document": Document("Not Found", 404, "there is no dump 20261121T115346Z-3f2a"),
}
