"""Metrics of the publisher."""

from functools import partial
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

from databus_core.dead_letters import Reason
from databus_core.metrics.freshness import Freshness

REGISTRY = CollectorRegistry()
_counter = partial(Counter, registry=REGISTRY)
_histogram = partial(Histogram, registry=REGISTRY)

FRESHNESS = Freshness("publisher", REGISTRY)
RECORDS = _counter("databus_publisher_records", "Records committed to Kafka", ["topic"])
TRANSACTIONS = _counter(
    "databus_publisher_transactions", "Source transactions committed to Kafka, also those of backfills"
)
KAFKA_COMMITS = _counter("databus_publisher_kafka_commits", "Commits of changes or of a new position to Kafka")
COMMIT_SECONDS = _histogram(
    "databus_publisher_commit_seconds",
    "Duration of a commit to Kafka, from its request to its end",
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
COMMIT_TRANSACTIONS = _histogram(
    "databus_publisher_commit_transactions",
    "Source transactions in a commit to Kafka",
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000),
)
GENERATIONS = _counter("databus_publisher_generations", "Generations of the pipe opened")
DEAD_LETTERS = _counter(
    "databus_publisher_dead_letters",
    "Records written to the dead-letter topic; counted again if their transaction is repeated",
    ["reason"],
)
CLAIM_CHECKS = _counter(
    "databus_publisher_claim_checks", "Values stored as files; counted again if their transaction is repeated"
)

for _reason in get_args(Reason):
    DEAD_LETTERS.labels(_reason)
