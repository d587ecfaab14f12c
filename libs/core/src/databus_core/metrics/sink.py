"""Metrics of the sink."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from databus_core.metrics.freshness import Freshness

REGISTRY = CollectorRegistry()
_counter = partial(Counter, registry=REGISTRY)
_gauge = partial(Gauge, registry=REGISTRY)

FRESHNESS = Freshness("sink", REGISTRY)
ROWS = _counter(
    "databus_sink_rows",
    "Row images of the lake's tables that were written to the change log; those of the last batch are counted again "
    "after a start",
)
BATCHES = _counter("databus_sink_batches", "Micro-batches committed to the lake")
LAG_RECORDS = _gauge(
    "databus_sink_lag_records",
    "Offsets in Kafka that the change log does not have, when the sink last looked; markers of Kafka's transactions "
    "count, too",
)
STEP_SECONDS = Histogram(
    "databus_sink_step_seconds",
    "Duration of the steps of a batch: `batch` (all of it), `change_log` (records are read, decoded and appended, "
    "which Spark does in one job), `mirror` (one table is merged)",
    ["step"],
    buckets=(0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600),
    registry=REGISTRY,
)
FILES = _gauge(
    "databus_sink_files",
    "Files with the rows of a mirror, or of the `change log`, when it was last compacted (`spark.maintain.interval`); "
    "after a start, only tables that are still written to",
    ["table"],
)
PARKED = _gauge("databus_sink_parked_tables", "Tables whose mirrors do not follow them any more")
QUARANTINED = _counter("databus_sink_quarantined_records", "Records in Kafka that could not be used")
OFFSET = _gauge("databus_sink_offset", "Next Kafka offset to read", ["topic", "partition"])
VERIFY_DIFFERING = _gauge(
    "databus_sink_verify_differing_rows",
    "Rows that differed from the database when a mirror was last compared (`spark.verify`); all rows, at least 1, of a "
    "table without a mirror",
    ["table"],
)
VERIFY_TIME = _gauge("databus_sink_verify_timestamp_seconds", "When a mirror was last compared", ["table"])

for _step in ("batch", "change_log", "mirror"):
    STEP_SECONDS.labels(_step)
