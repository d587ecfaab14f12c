"""All metrics, for Prometheus. docs/reference/metrics.md describes them; health is in `runtime`."""

from prometheus_client import Counter, Gauge, Histogram

LEADER = Gauge("databus_leader", "1 while this process is the active replica of its service", ["role"])

EVENTS_READ = Counter(
    "databus_reader_events", "Binlog events decoded; rows of tables that are not captured are skipped"
)
ROWS_READ = Counter("databus_reader_rows", "Row images of captured tables read")
TRANSACTIONS_READ = Counter("databus_reader_transactions", "Captured source transactions read")
TABLES_READ_AGAIN = Counter(
    "databus_reader_tables_read_again",
    "Tables read from information_schema because of DDL: its effect is not clear, or the table was not known",
)
STATEMENTS_SKIPPED = Counter(
    "databus_reader_statements_skipped",
    "DML statements that mention captured schemas, but change only tables that are not captured, and log no rows",
)
TABLES_IN_DOUBT = Gauge(
    "databus_reader_table_in_doubt",
    "1 for a table in doubt: parked (its changes are left out), or filling (it is loaded again)",
    ["table", "state"],
)
NEW_STARTS = Counter(
    "databus_reader_new_starts", "Starts at the end of the binlog with a load of all tables (`doubt.all: heal`)"
)
BACKFILL_ROWS = Counter("databus_reader_backfill_rows", "Rows of backfills read from the database", ["table"])
BACKFILL_STATE = Gauge(
    "databus_reader_backfills", "Backfills by state: waiting (for a connection or a time), running, paused", ["state"]
)
BACKLOG_BYTES = Gauge("databus_reader_backlog_bytes", "Bytes in the Redis stream that are not published yet")
BINLOG_OFFSET = Gauge("databus_reader_binlog_offset", "Offset in the current binlog file")
SOURCE_HOST = Gauge("databus_reader_source", "1 for the host that the binlog is read from, 0 for the others", ["host"])
SOURCE_REFUSALS = Counter(
    "databus_reader_source_refusals", "Times the reader refused a host, by reason", ["host", "reason"]
)
SOURCE_LAG = Gauge("databus_reader_lag_seconds", "Age of the last event when the reader read it")
PREPARED_SECONDS = Gauge(
    "databus_reader_prepared_seconds",
    "Age of an XA transaction with captured rows that has been prepared for more than a minute, by XID",
    ["xid"],
)

RECORDS_PUBLISHED = Counter("databus_publisher_records", "Records committed to Kafka", ["topic"])
TRANSACTIONS_PUBLISHED = Counter(
    "databus_publisher_transactions", "Transactions committed to Kafka, also those of backfills"
)
KAFKA_COMMITS = Counter("databus_publisher_kafka_commits", "Commits of changes or of a new position to Kafka")
GENERATIONS_OPENED = Counter("databus_publisher_generations", "Generations opened")
DEAD_LETTERS = Counter(
    "databus_publisher_dead_letters",
    "Records written to the dead-letter topic; counted again if their transaction is repeated",
    ["reason"],
)
CLAIM_CHECKS = Counter(
    "databus_publisher_claim_checks", "Values stored as files; counted again if their transaction is repeated"
)
PUBLISH_LAG = Gauge(
    "databus_publisher_lag_seconds",
    "Age of the last source transaction, captured or not, when Kafka's progress passed it",
)

DUMPS = Counter("databus_dump_total", "Dumps that ended, by state", ["state"])
DUMP_ROWS = Counter("databus_dump_rows", "Rows written to dumps")
DUMP_DOWNLOADS = Counter("databus_dump_downloads", "Downloads of dump files")
DUMP_STORAGE_FREE = Gauge("databus_dump_storage_free_bytes", "Free bytes on the volume of the dumps")
LEASE_CONFLICTS = Counter("databus_dump_lease_conflicts", "Deletions refused because a client reads the dump")

SINK_ROWS = Counter("databus_sink_rows", "Row images written to the change log")
SINK_BATCHES = Counter("databus_sink_batches", "Micro-batches committed to the lake")
SINK_LAG_RECORDS = Gauge("databus_sink_lag_records", "Offsets in Kafka that the change log does not have")
SINK_LAG_SECONDS = Gauge("databus_sink_lag_seconds", "Time since the moment whose changes in Kafka are all in the lake")
SINK_STEP_SECONDS = Histogram(
    "databus_sink_step_seconds",
    "Duration of the steps of a batch: batch (all of it), change_log (read, decode, append), mirror (one table)",
    ["step"],
    buckets=(0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600),
)
SINK_FILES = Gauge("databus_sink_files", "Files with the rows of a table of the lake, after its upkeep", ["table"])
SINK_PARKED = Gauge("databus_sink_parked_tables", "Tables whose mirrors do not follow them any more")
SINK_QUARANTINED = Counter("databus_sink_quarantined_records", "Records in Kafka that could not be used")
SINK_OFFSET = Gauge("databus_sink_offset", "Next Kafka offset to read", ["topic", "partition"])
SINK_VERIFY_DIFFERING = Gauge(
    "databus_sink_verify_differing_rows", "Rows that differed from the database when last compared", ["table"]
)
SINK_VERIFY_TIME = Gauge("databus_sink_verify_timestamp_seconds", "When a mirror was last compared", ["table"])
