"""The sections of the reader, the dump API and the Spark sink; and the election, which reader and publisher have."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from databus.settings.start import Start, StartLatest
from databus.settings.values import Duration, FileUrl, HostPort, HttpUrl, Section, Size, TablePattern
from databus_binlog import Engine


class Election(Section):
    """How several replicas of a service agree on the active one."""

    by: Literal["redis", "kubernetes"] = "redis"
    """Where the lease of the active replica is stored: a key in `redis`, or a Lease object in `kubernetes`."""
    renew: Duration = 2.0
    """How often the lease is renewed; a replica that vanishes is replaced within 3 x `renew` (`kubernetes`: + 1 s)."""


class Reader(Section):
    """The service that reads the binlog."""

    start: Start = StartLatest()
    """Where a pipeline without progress begins: `latest`, `earliest`, `FILE:OFFSET`, `gtid:SET` or `dump:ID`."""
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


class Dumps(Section):
    """The service that takes snapshots."""

    storage: FileUrl = "file:///var/lib/databus/dumps"
    """Folder of the dumps."""
    keep: Annotated[int, Field(ge=1)] = 3
    """Complete dumps to keep of each set of tables. After each new dump, older ones that nobody reads are deleted."""
    lease_ttl: Duration = 60.0
    """How long a client's lease, which prevents the deletion of a dump, lasts without renewal."""
    part_size: Size = 64 * 2**20
    """Size, before compression, at which a file of a dump is closed and the next one begun."""
    url: HttpUrl = "http://127.0.0.1:8080"
    """Where the sink, the command `databus dump`, and a reader that starts at a dump find the dump API."""
    listen: HostPort = "127.0.0.1:8080"
    """Address of the dump API and its `/healthz`, `/readyz` and `/metrics`."""


class Spark(Section):
    """The service that maintains the lake."""

    lake: FileUrl = "file:///var/lib/databus/lake"
    """Folder of the lake."""
    table_format: Literal["delta"] = "delta"
    """Table format of the lake."""
    tables: Annotated[list[TablePattern], Field(min_length=1)] = ["*.*"]
    """Tables to store in the lake, of those that are captured, as `schema.table` patterns with `*` and `?`."""
    jars: Path = Path("/opt/databus/jars")
    """Folder with the jars of Spark's connectors for Kafka and Delta."""
    master: str = "local[2]"
    """Spark master to run on."""
    trigger: Duration = 5.0
    """Interval between the starts of micro-batches."""
    listen: HostPort = "127.0.0.1:9103"
    """Address of the sink's `/healthz`, `/readyz` and `/metrics`."""
