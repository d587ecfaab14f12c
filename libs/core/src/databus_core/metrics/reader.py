"""Metrics of the reader."""

import math
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from databus_core.metrics.freshness import Freshness

REGISTRY = CollectorRegistry()
_counter = partial(Counter, registry=REGISTRY)
_gauge = partial(Gauge, registry=REGISTRY)

FRESHNESS = Freshness("reader", REGISTRY)
EVENTS = _counter("databus_reader_events", "Binlog events decoded; rows of tables that are not captured are skipped")
ROWS = _counter("databus_reader_rows", "Row images of captured tables read")
TRANSACTIONS = _counter("databus_reader_transactions", "Captured source transactions read")
TABLES_READ_AGAIN = _counter(
    "databus_reader_tables_read_again",
    "Tables read from information_schema because of DDL: its effect is not clear, or the table was not known",
)
STATEMENTS_SKIPPED = _counter(
    "databus_reader_statements_skipped",
    "DML statements that mention captured schemas, but change only tables that are not captured, and log no rows: "
    "look at them if these tables have triggers",
)
TABLES_IN_DOUBT = _gauge(
    "databus_reader_table_in_doubt",
    "1 for a table in doubt: `parked` (its changes are left out), or `filling` (it is loaded again)",
    ["table", "state"],
)
NEW_STARTS = _counter(
    "databus_reader_new_starts",
    "New starts at the end of the binlog, where all tables are loaded again (`doubt.all: heal`)",
)
BACKFILL_ROWS = _counter("databus_reader_backfill_rows", "Rows of backfills read from the database", ["table"])
BACKFILLS = _gauge(
    "databus_reader_backfills",
    "Backfills that have not ended: `waiting` (for a connection or a time), `running` or `paused`",
    ["state"],
)
BACKFILLS_ENDED = _counter(
    "databus_reader_backfills_ended", "Backfills that have ended: `done`, `cancelled` or `failed`", ["state"]
)
BACKLOG_BYTES = _gauge("databus_reader_backlog_bytes", "Bytes in the Redis stream that are not published yet")
BACKLOG_LIMIT_BYTES = _gauge(
    "databus_reader_backlog_limit_bytes", "`reader.backlog_limit`: the reader waits while the backlog is above it"
)
BINLOG_OFFSET = _gauge("databus_reader_binlog_offset", "Offset in the current binlog file")
SOURCE_HOST = _gauge("databus_reader_source", "1 for the host that the binlog is read from, 0 for the others", ["host"])
SOURCE_REFUSALS = _counter(
    "databus_reader_source_refusals",
    "Times the reader refused a host, by reason: it cannot fail over to that host",
    ["host", "reason"],
)
RETENTION_HEADROOM_SECONDS = _gauge(
    "databus_reader_retention_headroom_seconds",
    "Time after which the server deletes binlogs that were not read yet, if the reader stopped now; +Inf if the server "
    "deletes none by itself; looked up every minute",
)
RETENTION_HEADROOM_BYTES = _gauge(
    "databus_reader_retention_headroom_bytes",
    "Bytes of the server's binlogs before the position that was read last: they are purged before any that is needed; "
    "looked up every minute",
)
REDIS_MEMORY_BYTES = _gauge("databus_redis_memory_bytes", "Memory that Redis uses; looked up every minute")
REDIS_MEMORY_LIMIT_BYTES = _gauge(
    "databus_redis_memory_limit_bytes", "`maxmemory` of Redis, 0 if there is no limit; looked up every minute"
)
PREPARED_SECONDS = _gauge(
    "databus_reader_prepared_seconds",
    "Age of an XA transaction with captured rows that has been prepared for more than a minute, by its XID as XA "
    "COMMIT accepts it: commit it or roll it back, because its rows are published only then",
    ["xid"],
)

for _state in ("done", "cancelled", "failed"):
    BACKFILLS_ENDED.labels(_state)
for _looked_up in (
    RETENTION_HEADROOM_SECONDS,
    RETENTION_HEADROOM_BYTES,
    REDIS_MEMORY_BYTES,
    REDIS_MEMORY_LIMIT_BYTES,
):
    _looked_up.set(math.nan)
for _state in ("waiting", "running", "paused"):
    BACKFILLS.labels(_state)
