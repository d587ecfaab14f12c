"""Every Redis key, Kafka topic, transactional id and Kubernetes Lease.

The braces make all keys of a pipeline one hash slot, so that a Redis function may touch them together in a cluster.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b, sha256

import msgspec

from databus.events import Table


def function_library(source: str) -> str:
    """Redis function library of the pipe, named after its text: a changed one never meets an old one's functions."""
    return f"databus_{blake2b(source.encode(), digest_size=6).hexdigest()}"


def generation_key(pipeline: str) -> str:
    """Hash with the open generation: token, start, claim, next number, bytes appended and taken, largest entry."""
    return f"databus:{{{pipeline}}}:generation"


def stream_key(pipeline: str) -> str:
    """Stream of entries from the reader to the publisher."""
    return f"databus:{{{pipeline}}}:stream"


def host_key(pipeline: str) -> str:
    """String: the host that the reader is at, so that its successor begins there."""
    return f"databus:{{{pipeline}}}:host"


def switch_key(pipeline: str) -> str:
    """Expiring string: the host that the reader is asked to go to."""
    return f"databus:{{{pipeline}}}:switch"


def switched_key(pipeline: str, request: str) -> str:
    """Expiring list: what became of a request to go to a host."""
    return f"databus:{{{pipeline}}}:switched:{request}"


def lease_key(pipeline: str, dump: str, lease: str) -> str:
    """Expiring key: somebody reads this dump. `*` as the lease gives the pattern of all of them."""
    return f"databus:{{{pipeline}}}:lease:{dump}:{lease}"


def leader_key(pipeline: str, role: str) -> str:
    """Expiring key: its value names the one active replica of a service."""
    return f"databus:{{{pipeline}}}:leader:{role}"


def leader_lease(pipeline: str, role: str) -> str:
    """Kubernetes Lease of the one active replica of a service. The chart grants access to it by the same rule."""
    plain = pipeline.lower().replace("_", "-")
    if plain != pipeline:  # two pipelines must not share a lease because Kubernetes knows no capitals
        plain += f"-{sha256(pipeline.encode()).hexdigest()[:8]}"
    return f"databus-{plain}-{role}"


def transactional_id(pipeline: str) -> str:
    """Kafka's transactional id: one live publisher a pipeline."""
    return f"databus.{pipeline}"


def progress_topic(pipeline: str) -> str:
    """Compacted topic with one partition and one key: how far this pipeline is (ADR 2)."""
    return f"databus.progress.{pipeline}"


def schema_topic(pipeline: str) -> str:
    """Compacted topic with one partition: each table as it is at the pipeline's progress."""
    return f"databus.schemas.{pipeline}"


def schema_key(*name: str) -> bytes:
    """Key in the schema topic: of a table by schema and name, of a schema, and, by nothing, of the history's head."""
    return msgspec.json.encode(name)


def dead_letter_topic(pipeline: str) -> str:
    """Compacted topic with one partition: records that could not be published."""
    return f"databus.deadletter.{pipeline}"


def replay_id(pipeline: str) -> str:
    """Kafka's transactional id of whoever replays dead letters."""
    return f"{transactional_id(pipeline)}.deadletter"


def table_topic(template: str, pipeline: str, table: Table) -> str:
    """Name the topic of a table; characters Kafka does not allow become `_`."""
    return kafka_name(template.format(name=pipeline, schema=table.schema, table=table.name))


def debezium_transaction_topic(prefix: str) -> str:
    """Topic with one partition: begin and end of transactions, in Debezium's formats."""
    return f"{prefix}.transaction"


def debezium_heartbeat_topic(prefix: str) -> str:
    """Topic with one partition: heartbeats, in Debezium's formats."""
    return f"__debezium-heartbeat.{prefix}"


def table_topics(templates: Iterable[str], pipeline: str, patterns: Iterable[str]) -> str:
    """Build the regular expression of the topics of all tables that match a `schema.table` pattern, and maybe more."""
    parts = [pattern.split(".", 1) for pattern in patterns]
    names = (each.format(name=pipeline, schema=schema, table=table) for each in templates for schema, table in parts)
    topics = "|".join(_kafka_pattern(name) for name in sorted(set(names)))
    ours = "|".join(re.escape(name("")) for name in (progress_topic, schema_topic, dead_letter_topic))
    return rf"(?!{ours})({topics})"


def kafka_name(name: str) -> str:
    """Make a name that Kafka allows: other characters become `_`."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def _kafka_pattern(name: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(c) or re.escape(kafka_name(c)) for c in name)
