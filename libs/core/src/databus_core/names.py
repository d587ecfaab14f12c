"""The names of every Redis key and function library, Kafka topic, transactional id and Kubernetes Lease.

The braces in Redis keys put all keys of a pipeline into one hash slot, so that a Redis function can use them together
in a cluster.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b, sha256

import msgspec

#: record header of rows that a backfill loaded, in `databus` and `canal-json`: `initial` or `incremental`
SNAPSHOT_HEADER = "databus.snapshot"
#: header of every record of changes: its place in the pipeline's order (`databus_messages.sequence`)
SEQUENCE_HEADER = "databus.sequence"


def function_library(source: str) -> str:
    """Redis function library of the pipe. Its name contains a hash of `source`, so that versions share no functions."""
    return f"databus_{blake2b(source.encode(), digest_size=6).hexdigest()}"


def generation_key(pipeline: str) -> str:
    """The open generation of the pipe, a Redis hash: token, start, claim, next, appended, taken, largest, read_to."""
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


def dump_owner_key(pipeline: str, dump: str) -> str:
    """Expiring string: the replica of dump-api that takes this dump."""
    return f"databus:{{{pipeline}}}:dump:{dump}:owner"


def dump_deletion_key(pipeline: str, dump: str) -> str:
    """Expiring string: the replica of dump-api that deletes this dump."""
    return f"databus:{{{pipeline}}}:dump:{dump}:deletion"


def dump_progress_key(pipeline: str, dump: str) -> str:
    """Expiring string: how far this dump has come, as JSON (`databus_core.manifest.DumpProgress`)."""
    return f"databus:{{{pipeline}}}:dump:{dump}:progress"


def idempotency_key(pipeline: str, digest: str) -> str:
    """Expiring string: what the request with this Idempotency-Key created, as JSON; the key is hashed."""
    return f"databus:{{{pipeline}}}:idempotency:{digest}"


def schedule_key(pipeline: str, schedule: str) -> str:
    """Expiring string: the replica of dump-api that looks whether the schedule is due."""
    return f"databus:{{{pipeline}}}:schedule:{schedule}"


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
    """Key in the schema topic: (schema, table); (schema,) for its character set; () for the head record.

    ("", schema, table) is the key of the record of a table whose topic belongs to another table.
    """
    return msgspec.json.encode(name)


def table_states_topic(pipeline: str) -> str:
    """Compacted topic with one partition: backfills and tables in doubt (`databus_core.table_states`)."""
    return f"databus.tables.{pipeline}"


def dead_letter_topic(pipeline: str) -> str:
    """Compacted topic with one partition: records that could not be published."""
    return f"databus.deadletter.{pipeline}"


def replay_id(pipeline: str) -> str:
    """Kafka's transactional id for replaying dead letters."""
    return f"{transactional_id(pipeline)}.deadletter"


def check_id(pipeline: str) -> str:
    """Kafka's transactional id for checking that transactions are possible: it fences nobody."""
    return f"{transactional_id(pipeline)}.check"


def table_topic(template: str, pipeline: str, schema: str, table: str, *, escape: bool = False) -> str:
    """Topic of a table. In its names, characters that Kafka does not allow become `_`, or all of them are escaped."""
    convert = escaped_name if escape else kafka_name
    return template.format(name=pipeline, schema=convert(schema), table=convert(table))


def is_reserved(topic: str) -> bool:
    """Return whether a topic is, or collides with, the state or the dead letters of any pipeline."""
    return folded(topic).startswith(tuple(folded(name("")) for name in _OWN_TOPICS))


def folded(topic: str) -> str:
    """The name as Kafka compares it: of topics that differ only in `.` and `_`, it accepts only one."""
    return topic.replace(".", "_")


def database_topic(template: str, pipeline: str, schema: str, *, escape: bool = False) -> str:
    """Topic of DDL on a database: the table topic's template without `{table}` and the punctuation before it."""
    without_table = re.sub(r"[._-]*\{table[^}]*\}", "", template).strip("._-")
    convert = escaped_name if escape else kafka_name
    return without_table.format(name=pipeline, schema=convert(schema)) or pipeline


def debezium_transaction_topic(prefix: str) -> str:
    """Topic with one partition: begin and end of transactions, in Debezium's formats."""
    return f"{prefix}.transaction"


def debezium_heartbeat_topic(prefix: str) -> str:
    """Topic with one partition: heartbeats, in Debezium's formats."""
    return f"__debezium-heartbeat.{prefix}"


def table_topics(templates: Iterable[tuple[str, bool]], pipeline: str, patterns: Iterable[str]) -> str:
    """Regular expression of the topics of all tables that match a `schema.table` pattern, and perhaps of others.

    Each template is given with whether it escapes names. The expression excludes topics whose names begin like those of
    Databus' own topics.
    """
    parts = [pattern.split(".", 1) for pattern in patterns]
    topics = {
        re.escape(template)
        .replace(r"\{", "{")
        .replace(r"\}", "}")
        .format(name=re.escape(pipeline), schema=_pattern(schema, escape), table=_pattern(table, escape))
        for template, escape in templates
        for schema, table in parts
    }
    ours = "|".join(re.escape(name("")) for name in _OWN_TOPICS)
    return rf"(?!{ours})({'|'.join(sorted(topics))})"


def kafka_name(name: str) -> str:
    """The name with `_` for each character that Kafka does not allow."""
    return "".join(c if _is_plain(c) or c in "._-" else "_" for c in name)


def escaped_name(name: str) -> str:
    """The name with `-` and two hexadecimal digits for each byte of UTF-8 that is neither a letter nor a digit.

    Different names stay different, and a `.` or `_` beside the name cannot be taken for a part of it.
    """
    return "".join(c if _is_plain(c) else "".join(f"-{byte:02x}" for byte in c.encode()) for c in name)


def _is_plain(c: str) -> bool:
    return c.isascii() and c.isalnum()


def _pattern(pattern: str, escape: bool) -> str:
    """Turn a pattern with `*` and `?` into a regular expression of names as they are in topics."""
    convert, one = (escaped_name, ".+") if escape else (kafka_name, ".")
    return "".join({"*": ".*", "?": one}.get(c) or re.escape(convert(c)) for c in pattern)


#: functions that name the topics of a pipeline that are not for changes
_OWN_TOPICS = (progress_topic, schema_topic, table_states_topic, dead_letter_topic)
