"""The sections of the reader and the Spark sink; and the election, which reader and publisher have."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from databus_binlog import Engine
from databus_core.settings.start import Start, StartLatest
from databus_core.settings.values import (
    Duration,
    HadoopUrl,
    HostPort,
    Interval,
    Section,
    Size,
    SparkMaster,
    SparkProperty,
    SparkValue,
    TablePattern,
)


class Election(Section):
    """How several replicas of a service agree on the active one."""

    by: Literal["redis", "kubernetes"] = "redis"
    """Where the lease of the active replica is stored: a key in `redis`, or a Lease object in `kubernetes`."""
    renew: Duration = 2.0
    """How often the lease is renewed; a replica that vanishes is replaced within 3 x `renew` (`kubernetes`: + 1 s)."""


class Reader(Section):
    """The service that reads the binlog."""

    start: Start = StartLatest()
    """Where a pipeline begins: `latest`, `snapshot`, `earliest`, `FILE:OFFSET`, `gtid:SET`, `time:TIME`, `dump:ID`."""
    server_id: Annotated[int, Field(ge=1, lt=2**32)] | None = None
    """Id of the reader among the server's replicas, different from all others; by default it is derived from `name`."""
    backlog_limit: Size = 256 * 2**20
    """The reader pauses while Redis stores this much that is not published yet."""
    row_limit: Size = 8 * 2**20
    """Limit of a row in the binlog, an update's two images together; for a larger row, see `publisher.oversize`."""
    engine: Engine = "native"
    """What decodes the binlog: the built-in decoder, or the package mysql-replication, which is slower."""
    election: Election = Election()
    """The election among replicas of the reader."""
    listen: HostPort = "127.0.0.1:9101"
    """Address of the reader's `/healthz`, `/readyz` and `/metrics`."""


class Backfills(Section):
    """How the rows of single tables are loaded into the stream, beside the changes."""

    new_tables: bool = False
    """Whether a table that a change of `source.include` or `exclude` adds is loaded, after a TRUNCATE."""
    connections: Annotated[int, Field(ge=1, le=64)] = 2
    """How many tables are loaded at the same time; each uses two connections to the database."""
    rows_per_second: Annotated[int, Field(ge=1)] | None = None
    """Limit of the rows that are read from the database, of all tables together; by default there is none."""
    replica_lag: Duration = 30.0
    """Backfills pause while a replica among `source.hosts` is further behind than this."""
    keyless_limit: Size = 2**30
    """Largest table without a usable key that is loaded without `--any-size`; the stream waits while it is read."""


class Doubts(Section):
    """What happens when the binlog does not show all changes of a table, or the publisher cannot publish them."""

    on_doubt: Literal["park", "stop"] = "park"
    """`park`: the table's changes are not published until the table is loaded again; `stop`: the service stops."""
    heal: Literal["auto", "manual"] = "auto"
    """Whether a parked table is loaded again at once, or only by the command `databus backfill start TABLE --clean`."""
    all: Literal["stop", "heal"] = "stop"
    """If changes of any table may be missing: `stop` the reader, or `heal`: load all tables (needs `heal: auto`)."""

    cascades: Literal["warn", "heal"] = "warn"
    """`heal`: a table is loaded again after foreign keys have changed its rows without logging them; `warn`: not."""

    @model_validator(mode="after")
    def _heals(self) -> Self:
        if self.all == "heal" and self.heal != "auto":
            raise ValueError("all: heal needs heal: auto")
        return self


def _name_null(value: object) -> object:
    """Return the text `null`, as which YAML does not read it unless it is quoted."""
    return "null" if value is None else value


class SparkTypes(Section):
    """Types of the mirrors' columns, where Spark has no type with the same values."""

    zero_dates: Annotated[Literal["null", "string"], BeforeValidator(_name_null)] = "null"
    """`null`: `0000-00-00` is NULL; `string`: all DATE, DATETIME and TIMESTAMP columns are strings."""
    time_columns: Literal["string", "microseconds"] = "string"
    """Type of TIME columns: `string`, or `microseconds` as `bigint`."""
    json_columns: Literal["string", "variant"] = "string"
    """Type of MySQL's JSON columns; `variant` needs `table_format: delta`, and readers that have this type."""


class Maintain(Section):
    """How the lake is kept small and fast to read."""

    interval: Interval = 3600.0
    """Interval at which the sink writes small files together and deletes old ones; 0: never."""
    keep: Duration = 7 * 86400.0
    """How long files and history of earlier versions of the tables are kept, for readers and `rebuild`; 1h or more."""
    log_retention: Interval = 0
    """Days of the change log that are older than this are deleted when all mirrors have them; 0: none."""


class Spark(Section):
    """The service that maintains the lake."""

    lake: HadoopUrl = "file:///var/lib/databus/lake"
    """Folder of the lake: `file:///…`, `s3a://…`, `hdfs://…`, `abfss://…`, `gs://…`."""
    table_format: Literal["delta", "iceberg"] = "delta"
    """Table format of the lake. A lake keeps the one that it was created with."""
    tables: Annotated[list[TablePattern], Field(min_length=1)] = ["*.*"]
    """Tables to store in the lake, of those that are captured, as `schema.table` patterns with `*` and `?`."""
    types: SparkTypes = SparkTypes()
    """Types of the mirrors' columns. After a change, the sink loads all mirrors again, from new dumps."""
    jars: Path = Path("/opt/databus/jars")
    """Folder with the jars of Spark's connectors: for Kafka, the table format, and the file system of the lake."""
    heal: Literal["auto", "manual"] = "auto"
    """Whether a table whose mirror cannot follow any more is loaded again from a new dump of it, or stays parked."""
    verify: Interval = 0
    """Interval at which the sink compares all mirrors with the database, by a new dump of all tables; 0: never."""
    maintain: Maintain = Maintain()
    master: SparkMaster = "local[2]"
    """Spark master to run on: `local[N]`, `local[*]`, `spark://HOST:PORT`, `yarn` or `k8s://URL`."""
    conf: dict[SparkProperty, SparkValue] = {}
    """Spark properties, as in `{spark.executor.memory: 4g}`; they override the sink's defaults, and are not logged."""
    trigger: Duration = 5.0
    """Interval between the starts of micro-batches."""
    listen: HostPort = "127.0.0.1:9103"
    """Address of the sink's `/healthz`, `/readyz` and `/metrics`."""

    @model_validator(mode="after")
    def _require_delta_for_variants(self) -> Self:
        if self.types.json_columns == "variant" and self.table_format != "delta":
            raise ValueError("types.json_columns: variant needs table_format: delta")
        return self
