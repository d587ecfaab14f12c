"""Metrics of dump-api."""

import math
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from databus_core.manifest import State

REGISTRY = CollectorRegistry()
_counter = partial(Counter, registry=REGISTRY)
_gauge = partial(Gauge, registry=REGISTRY)

ENDED = _counter("databus_dump", "Dumps that ended at this replica, by state", ["state"])
SECONDS = Histogram(
    "databus_dump_seconds",
    "Duration of the complete dumps of this replica, from their beginning to their end",
    buckets=(1, 5, 15, 60, 300, 900, 3600, 10800, 43200, 86400),
    registry=REGISTRY,
)
ROWS = _counter("databus_dump_rows", "Rows written to dumps")
DOWNLOADS = _counter("databus_dump_downloads", "Downloads of dump files that began")
LEASE_CONFLICTS = _counter(
    "databus_dump_lease_conflicts", "Times a dump was not deleted, because a client was reading it"
)
LEASES = _gauge("databus_dump_leases", "Leases of clients that read dumps; looked up every 30 s")
STORED_BYTES = _gauge("databus_dump_stored_bytes", "Bytes of all complete dumps; looked up every 30 s")
NEWEST_TIME = _gauge(
    "databus_dump_newest_timestamp_seconds",
    "When the newest complete dump ended; 0 if there is none; looked up every 30 s",
)
NEWEST_BYTES = _gauge("databus_dump_newest_bytes", "Bytes of the newest complete dump; looked up every 30 s")
SCHEDULES = _gauge("databus_dump_schedules", "Schedules of `dumps.schedules`")
STORAGE_FREE_BYTES = _gauge(
    "databus_dump_storage_free_bytes",
    "Free bytes on the volume of the dumps: new dumps are refused if less than 1 MiB is free; +Inf in S3",
)

NEWEST_TIME.set(math.nan)
for _state in State:
    if _state.ended:
        ENDED.labels(_state)
