"""What the services log: the names of all events, and the fields that a line can have.

`make docs` writes both into docs/reference/logs.md. Neither a field nor a text may contain a row's values or a secret.
"""

from enum import StrEnum
from typing import Annotated, Self, TypedDict


class LogEvent(StrEnum):
    """What happened. Alerts match the names, so they must not change; the text of a line may."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        """Make a member whose value is `name`, with a sentence for the reference."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member

    # --- every service
    STARTED = "started", "The service has read its configuration and starts to work."
    STOPPED = "stopped", "The work has ended, or the service has stopped after a signal."
    FAILED = "failed", "The service exits because of this error; several errors are one line each."
    CRASHED = "crashed", "The service exits because of an unknown error: a bug, please report it."
    BACKGROUND_ERROR = "background_error", "A task failed and nothing waited for it: a bug, please report it."
    STEP_FAILED = "step_failed", "The service was stopped during a step, and the step failed; it is repeated later."
    DEPENDENCY_LOST = "dependency_lost", "A dependency is unavailable. The service retries until it is back."
    DEPENDENCY_RETRIED = "dependency_retried", "The dependency is still unavailable (level debug, for each retry)."
    DEPENDENCY_BACK = "dependency_back", "A dependency is available again; `seconds` is the length of the outage."
    CHECK_WARNING = "check_warning", "What was checked works now, but an operator should look at it (`--check`)."
    LIBRARY = "library", "A line of a library or a warning of Python; `logger` names its source."
    COLLECTOR_LOST = "collector_lost", "Spans are dropped, because the collector of traces does not accept them."
    COLLECTOR_BACK = "collector_back", "The collector of traces accepts spans again."

    # --- replicas of reader and publisher
    LEADERSHIP_ACQUIRED = "leadership_acquired", "This replica is the active one from now on."
    STANDBY = "standby", "Another replica is active; this one takes over when the other one stops."
    STANDBY_NOT_READY = (
        "standby_not_ready",
        "A standby is not ready: something that it depends on refuses it.",
    )
    LEADERSHIP_LOST = "leadership_lost", "This replica stops working, because another one may be active."
    GENERATION_LOST = "generation_lost", "Reader and publisher lost their common generation; a new one follows."

    # --- reader
    READING = "reading", "The reader starts to read the binlog of a host at a position."
    HOST_REFUSED = "host_refused", "A host of the source lacks the next changes, or is not set up for capture."
    SOURCE_SWITCHED = "source_switched", "The reader reads the host given to `databus source switch`."
    SOURCE_NOT_SWITCHED = "source_not_switched", "The reader cannot use the host given to `databus source switch`."
    READING_BY_FILE = "reading_by_file", "The position has no GTIDs from now on, so no other host can take over."
    COLUMN_NAMES_MISSING = "column_names_missing", "The binlog does not name columns; the schema history is used."
    KEY_ASSUMED = "key_assumed", "A table's key may be unique instead of primary; it is used as the primary key."
    STATEMENT_SKIPPED = (
        "statement_skipped",
        "DML on a table that is not captured has no rows in the binlog (one line a table).",
    )
    CASCADES_NOT_LOGGED = "cascades_not_logged", "Foreign keys change rows of captured tables without logging them."
    LABELS_MISSING = "labels_missing", "The labels of an ENUM or SET column are not known; numbers are published."
    BACKFILL_STARTED = "backfill_started", "The rows of a table are being loaded; `rows` were loaded before."
    BACKFILL_DONE = "backfill_done", "All rows of a table are loaded."
    BACKFILL_FAILED = "backfill_failed", "A table cannot be loaded; the text says why."
    BACKFILL_STARTS_OVER = "backfill_starts_over", "A backfill begins again: its table was swapped, or its key altered."
    SNAPSHOT_INCOMPLETE = (
        "snapshot_incomplete",
        "The snapshot ended without its last table: no record has the marker `last`.",
    )
    BACKFILL_WAITS = "backfill_waits", "A backfill waits for the database."
    READING_WAITS = "reading_waits", "A backfill or a dump waits for replicas, because of their setting `replica_lag`."
    REQUESTS_NOT_READ = "requests_not_read", "Requests of backfills cannot be read from Kafka now; changes flow on."
    TABLE_PARKED = "table_parked", "A table is in doubt; its changes are left out until it is loaded again."
    TRANSACTION_SKIPPED = "transaction_skipped", "An operator has skipped a transaction: its rows become dead letters."
    NEW_START = "new_start", "Changes may be missing; reading starts anew, and all tables are loaded again."
    TABLE_HEALED = "table_healed", "A table that was in doubt is loaded again, or was dropped, renamed or excluded."
    CHILD_CHANGED = "child_changed", "Foreign keys have changed rows without logging them; the table is loaded again."
    TABLE_READ_AGAIN = "table_read_again", "A statement's effect is unclear, or a table is unknown; its schema is read."
    PREPARED = "prepared", "An XA transaction with captured rows is prepared for more than a minute (one line each)."
    PREPARED_READ = "prepared_read", "The rows of an XA transaction that was prepared before the start are read again."
    PREPARED_SEARCHED = "prepared_searched", "The XA PREPARE of a transaction is not known; the binlog is searched."
    COMMITTED_AGAIN = "committed_again", "MariaDB crashed during an XA COMMIT whose rows are published; it is repeated."

    # --- publisher
    GENERATION_OPENED = "generation_opened", "The publisher waits for a reader that continues after `transaction`."
    TRANSACTION_LEFT_OPEN = "transaction_left_open", "A Kafka transaction is still open; the next publisher aborts it."
    DEAD_LETTER = "dead_letter", "A record went to the dead-letter topic (logged once per table and generation)."
    TOPIC_REFUSED = "topic_refused", "A table has no topic, because of the names of other topics; its records wait."
    DDL_NOT_PUBLISHED = "ddl_not_published", "DDL on a table was left out, because nothing of it can be published."
    RECORD_LIMIT_LOWERED = "record_limit_lowered", "Kafka refused a batch; smaller ones are sent to this topic."
    PARTITIONS_MISSING = "partitions_missing", "A topic has fewer partitions than `publisher.partitions`."

    # --- dump-api and its clients
    DUMP_REQUESTED = "dump_requested", "The service has requested a dump and waits for it."
    DUMP_STARTED = "dump_started", "dump-api starts to take a dump."
    DUMP_COMPLETED = "dump_completed", "A dump is complete and can be read."
    DUMP_FAILED = "dump_failed", "A dump failed; the text says why."
    DUMP_SCHEDULED = "dump_scheduled", "A schedule is due: its dump is requested."
    SCHEDULE_FAILED = "schedule_failed", "A dump of a schedule cannot be requested now; it is tried again."
    DUMP_CANCELLED = "dump_cancelled", "A client has cancelled a dump."
    DUMP_STOPPED = "dump_stopped", "dump-api stops taking a dump: it was cancelled, or ended by another replica."
    DUMP_INTERRUPTED = "dump_interrupted", "A service is unavailable; a chunked dump goes on when it is back."
    DUMP_RESUMED = "dump_resumed", "The dump-api that took a chunked dump has stopped: any replica goes on with it."
    DUMP_BLOCKS_DDL = "dump_blocks_ddl", "A privilege is missing, so DDL on a dumped table waits until the dump ends."
    DUMP_NOT_PARALLEL = "dump_not_parallel", "A dump uses only one of `dumps.connections`; the text says why."
    LEASE_NOT_RENEWED = "lease_not_renewed", "A lease was not renewed; its dump may be deleted during the download."
    LEASE_NOT_RELEASED = "lease_not_released", "A lease was not released after a download; it expires by itself."
    REQUEST_FAILED = "request_failed", "An HTTP request failed with an unknown error: a bug, please report it."

    # --- spark-sink
    BOOTSTRAP_STARTED = "bootstrap_started", "The lake is loaded from this dump."
    TABLE_LOADED = "table_loaded", "A table's mirror has the rows of the dump."
    BOOTSTRAP_REFUSED = "bootstrap_refused", "Kafka lacks changes after the newest dump, so another one is taken."
    BOOTSTRAP_WAITING = (
        "bootstrap_waiting",
        "The sink, dump-api or a program waits until the pipeline has passed a position: the dump's, or its start.",
    )
    TABLE_NOT_MIRRORED = "table_not_mirrored", "A table gets a change log and no mirror; the text says why."
    RECORDS_MISSING = (
        "records_missing",
        "Changes did not reach the lake; the text says why, and how the tables get them.",
    )
    VALUES_LOST = "values_lost", "Values of a dump are NULL in the mirror, because the lake's types have no such value."
    MIRROR_PARKED = "mirror_parked", "A mirror does not follow its table any more; the text says why."
    MIRROR_RELEASED = "mirror_released", "A mirror that was parked follows its table again."
    MIRROR_BEHIND = "mirror_behind", "A mirror could not be written; it is tried again soon."
    HEALING_STARTED = "healing_started", "Parked tables, or those of a new pattern, are loaded from a new dump."
    HEALING_FAILED = "healing_failed", "Tables could not be loaded from a new dump; the sink tries again."
    MIRROR_DIFFERS = (
        "mirror_differs",
        "A mirror has other rows than its table in the database, or one of both is missing.",
    )
    VERIFY_FAILED = "verify_failed", "Mirrors could not be compared; it is tried again with the next run."
    UPKEEP_FAILED = "upkeep_failed", "Files of the lake could not be compacted or deleted; it is tried again later."
    RECORDS_QUARANTINED = "records_quarantined", "Records in Kafka could not be used; they are in the quarantine table."


class PositionFields(TypedDict, total=False):
    """A position in the binlog."""

    position: Annotated[str, "position in the binlog, `file:offset`"]
    gtid: Annotated[str, "GTID, or GTID set; a long one is cut"]


class Fields(PositionFields, total=False):
    """The fields of a line in addition to event and text; each is present where it applies."""

    pipeline: Annotated[str, "name of the pipeline"]
    generation: Annotated[str, "id of the generation (one use of the stream by publisher and reader), in hex digits"]
    role: Annotated[str, "`reader` or `publisher`"]
    holder: Annotated[str, "the active replica: host, process id and a random number"]
    listen: Annotated[str, "address of `/healthz`, `/readyz` and `/metrics`"]
    version: Annotated[str, "version of Databus"]
    dependency: Annotated[
        str,
        "`source`, `redis`, `kafka`, `storage`, `dump-api`, `kubernetes`, `schema-registry`, `spark`, `lake`, `disk`, "
        "or `rules` (of another service)",
    ]
    seconds: Annotated[float, "length of the outage"]
    host: Annotated[str, "host of the source, `host:port`"]
    transaction: Annotated[int, "ordinal of a source transaction in the pipeline"]
    topic: Annotated[str, "Kafka topic"]
    partitions: Annotated[int, "number of the topic's partitions"]
    limit: Annotated[int, "size in bytes of the largest batch that is sent to the topic"]
    table: Annotated[str, "`schema.table`"]
    tables: Annotated[int, "number of tables"]
    rows: Annotated[int, "number of rows or row images"]
    dump: Annotated[str, "id of a dump"]
    error: Annotated[str, "type of an unknown error"]
    task: Annotated[str, "the task that failed"]
    logger: Annotated[str, "module that wrote the line, as in `log.levels`; on the console only for `library`"]
