"""The names of every Redis key and function library, Kafka topic, transactional id and Kubernetes Lease.

The braces in Redis keys put all keys of a pipeline into one hash slot, so that a Redis function can use them together
in a cluster.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b, sha256

import msgspec

from databus.events import Table


def function_library(source: str) -> str:
    """Redis function library of the pipe. Its name contains a hash of `source`, so that versions share no functions."""
    return f"databus_{blake2b(source.encode(), digest_size=6).hexdigest()}"


def generation_key(pipeline: str) -> str:
    """The open generation of the pipe, a Redis hash: token, start, claim, next, appended, taken, largest."""
    return f"databus:{{{pipeline}}}:generation"


def stream_key(pipeline: str) -> str:
    """Stream of entries from the reader to the publisher."""
    return f"databus:{{{pipeline}}}:stream"


def host_key(pipeline: str) -> str:
    """String: the host that the reader reads, so that its successor begins there."""
    return f"databus:{{{pipeline}}}:host"


def switch_key(pipeline: str) -> str:
    """Expiring string: the request to switch the reader to another host."""
    return f"databus:{{{pipeline}}}:switch"


def switched_key(pipeline: str, request: str) -> str:
    """Expiring list: the result of a request to switch to another host."""
    return f"databus:{{{pipeline}}}:switched:{request}"


def lease_key(pipeline: str, dump: str, lease: str) -> str:
    """Expiring key: a client reads this dump. With `*` as the lease it is the pattern of all leases of the dump."""
    return f"databus:{{{pipeline}}}:lease:{dump}:{lease}"


def leader_key(pipeline: str, role: str) -> str:
    """Expiring string: the active replica of a service."""
    return f"databus:{{{pipeline}}}:leader:{role}"


def leader_lease(pipeline: str, role: str) -> str:
    """Kubernetes Lease of the active replica of a service. The Helm chart derives the same name, to grant access."""
    plain = pipeline.lower().replace("_", "-")
    if plain != pipeline:  # pipelines that differ only in case, or in _ and -, must not share a lease
        plain += f"-{sha256(pipeline.encode()).hexdigest()[:8]}"
    return f"databus-{plain}-{role}"


def transactional_id(pipeline: str) -> str:
    """Kafka's transactional id: it makes a pipeline's newest publisher fence the others."""
    return f"databus.{pipeline}"


def progress_topic(pipeline: str) -> str:
    """Compacted topic with one partition and one key: the progress of the pipeline (ADR 2)."""
    return f"databus.progress.{pipeline}"


def schema_topic(pipeline: str) -> str:
    """Compacted topic with one partition: the schemas of known tables at the pipeline's progress."""
    return f"databus.schemas.{pipeline}"


def schema_key(*name: str) -> bytes:
    """Key in the schema topic: (schema, table), (schema,) for its character set, or () for the head record."""
    return msgspec.json.encode(name)


def dead_letter_topic(pipeline: str) -> str:
    """Compacted topic with one partition: records that could not be published."""
    return f"databus.deadletter.{pipeline}"


def replay_id(pipeline: str) -> str:
    """Kafka's transactional id for replaying dead letters."""
    return f"{transactional_id(pipeline)}.deadletter"


def table_topic(template: str, pipeline: str, table: Table) -> str:
    """Topic of a table; characters that Kafka does not allow become `_`."""
    return kafka_name(template.format(name=pipeline, schema=table.schema, table=table.name))


def debezium_transaction_topic(prefix: str) -> str:
    """Topic with one partition: begin and end of transactions, in Debezium's formats."""
    return f"{prefix}.transaction"


def debezium_heartbeat_topic(prefix: str) -> str:
    """Topic with one partition: heartbeats, in Debezium's formats."""
    return f"__debezium-heartbeat.{prefix}"


def table_topics(templates: Iterable[str], pipeline: str, patterns: Iterable[str]) -> str:
    """Regular expression of the topics of all tables that match a `schema.table` pattern, and perhaps of others.

    It excludes topics whose names begin like those of Databus' own topics.
    """
    parts = [pattern.split(".", 1) for pattern in patterns]
    names = (each.format(name=pipeline, schema=schema, table=table) for each in templates for schema, table in parts)
    topics = "|".join(_kafka_pattern(name) for name in sorted(set(names)))
    ours = "|".join(re.escape(name("")) for name in (progress_topic, schema_topic, dead_letter_topic))
    return rf"(?!{ours})({topics})"


def kafka_name(name: str) -> str:
    """The name with `_` for each character that Kafka does not allow."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def _kafka_pattern(name: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(c) or re.escape(kafka_name(c)) for c in name)
