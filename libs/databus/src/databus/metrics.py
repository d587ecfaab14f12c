"""Every metric, for Prometheus. The service's own health is in `runtime`."""

from prometheus_client import Counter, Gauge

LEADER = Gauge("databus_leader", "1 while this process is the active one of the replicas of its service", ["role"])

EVENTS_READ = Counter("databus_reader_events", "Binlog events read, captured or not")
ROWS_READ = Counter("databus_reader_rows", "Row images read of captured tables")
TRANSACTIONS_READ = Counter("databus_reader_transactions", "Captured source transactions read")
TABLES_READ_AGAIN = Counter("databus_reader_tables_read_again", "Tables read again after DDL that does not tell them")
BACKLOG_BYTES = Gauge("databus_reader_backlog_bytes", "Bytes in the Redis stream that the publisher has not sent on")
BINLOG_OFFSET = Gauge("databus_reader_binlog_offset", "Offset in the current binlog file")
SOURCE_HOST = Gauge("databus_reader_source", "1 for the host that the binlog is read from, 0 for the others", ["host"])
SOURCE_REFUSALS = Counter("databus_reader_source_refusals", "Times a host was refused, by reason", ["host", "reason"])
SOURCE_LAG = Gauge("databus_reader_lag_seconds", "Age of the last event read, from commit to reader")

RECORDS_PUBLISHED = Counter("databus_publisher_records", "Records committed to Kafka", ["topic"])
TRANSACTIONS_PUBLISHED = Counter("databus_publisher_transactions", "Source transactions committed to Kafka")
KAFKA_COMMITS = Counter("databus_publisher_kafka_commits", "Kafka transactions committed")
GENERATIONS_OPENED = Counter("databus_publisher_generations", "Generations opened")
DEAD_LETTERS = Counter(
    "databus_publisher_dead_letters", "Records put into the dead-letter topic, repetitions included", ["reason"]
)
CLAIM_CHECKS = Counter("databus_publisher_claim_checks", "Values stored as files, repetitions included")
PUBLISH_LAG = Gauge("databus_publisher_lag_seconds", "Age of the last committed transaction, from source to Kafka")

DUMPS = Counter("databus_dump_total", "Dumps ended, by state", ["state"])
DUMP_ROWS = Counter("databus_dump_rows", "Rows written into dumps")
DUMP_DOWNLOADS = Counter("databus_dump_downloads", "Files of dumps served")
LEASE_CONFLICTS = Counter("databus_dump_lease_conflicts", "Deletions refused because somebody reads the dump")

SINK_ROWS = Counter("databus_sink_rows", "Row images written to the change log")
SINK_BATCHES = Counter("databus_sink_batches", "Micro-batches committed to the lake")
SINK_OFFSET = Gauge("databus_sink_offset", "Next Kafka offset to be read", ["topic", "partition"])
