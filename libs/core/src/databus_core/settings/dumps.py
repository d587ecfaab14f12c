"""The section `dumps`: the service that takes snapshots and serves them, and who may use it."""

import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from databus_core.manifest import FileFormat, Mode
from databus_core.settings.faults import shown_text
from databus_core.settings.values import (
    Duration,
    HostPort,
    HttpUrl,
    Interval,
    Name,
    Section,
    Size,
    StorageUrl,
    TablePattern,
)

Scope = Literal["read", "write"]


def _with_jsonl(formats: list[FileFormat]) -> list[FileFormat]:
    made = [each for each in formats if each.endswith("-json")]
    if made and FileFormat.JSONL not in formats:
        raise ValueError(f"add jsonl: {', '.join(made)} is made from it")
    return formats


def _require_cron(text: str) -> str:
    # Only dump-api and those who set a schedule need the library.
    from cronsim import CronSim, CronSimError  # noqa: PLC0415

    try:
        CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        expected = "minute, hour, day, month and day of the week, for example 0 3 * * *"
        raise ValueError(f"must be {expected}, not {shown_text(text)}: {error}") from error
    return text


def _require_hash(text: str | None) -> str | None:
    """Validate a hash. The error must not quote the text, which may be the key itself."""
    if text is not None and not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError("must be the key's SHA-256, as 64 of 0-9 and a-f: printf %s KEY | sha256sum")
    return text


class ApiKey(Section):
    """A key of clients of the dump API: either `sha256` or `key_file`."""

    name: Name
    """Name of the key in messages."""
    scopes: Annotated[list[Scope], Field(min_length=1)] = ["read"]
    """`read`: list and download dumps, and lease them; `write`: request, cancel and delete dumps, and backfills."""
    sha256: Annotated[str | None, AfterValidator(_require_hash), Field(repr=False)] = None
    """SHA-256 of the key, in hexadecimal."""
    key_file: Path | None = None
    """File with the key itself."""

    @model_validator(mode="after")
    def _hash(self) -> Self:
        if (self.sha256 is None) == (self.key_file is None):
            raise ValueError("set sha256 or key_file, one of them")
        if self.key_file:
            try:
                key = self.key_file.read_bytes().rstrip(b"\n")
            except OSError as error:
                raise ValueError(f"key_file cannot be read: {error.strerror}: {error.filename}") from error
            if not key:
                raise ValueError(f"key_file is empty: {self.key_file}")
            object.__setattr__(self, "sha256", sha256(key).hexdigest())
        return self


class Schedule(Section):
    """Dumps that are requested at certain times: either `every` or `cron`."""

    name: Name
    """Name of the schedule, in the manifests of its dumps."""
    tables: Annotated[list[TablePattern], Field(min_length=1)] | None = None
    """Tables to dump; by default all."""
    mode: Mode = Mode.VIEW
    """`view`: all rows as of one position; `chunked`: each chunk as of its own, resumed after a crash."""
    every: Duration | None = None
    """Time between two requests; the first one is made at once."""
    cron: Annotated[str, AfterValidator(_require_cron)] | None = None
    """Times in UTC, as in a crontab: `0 3 * * *`."""

    @model_validator(mode="after")
    def _require_times(self) -> Self:
        if (self.every is None) == (self.cron is None):
            raise ValueError("set every or cron, one of them")
        return self


def _require_different_names(entries: list[ApiKey] | list[Schedule]) -> list[ApiKey] | list[Schedule]:
    names = [entry.name for entry in entries]
    if shared := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two entries have the name {shared}")
    return entries


class Dumps(Section):
    """The service that takes snapshots."""

    storage: StorageUrl = "file:///var/lib/databus/dumps"
    """Folder of the dumps, or `s3://bucket/prefix`. Replicas of the dump API share it."""
    keep: Annotated[int, Field(ge=1)] = 3
    """Complete dumps to keep of each set of tables. Older ones that nobody reads are deleted."""
    keep_for: Interval = 0
    """Dumps that are younger than this are kept, too. The newest complete dump of all tables is always kept."""
    schedules: Annotated[list[Schedule], AfterValidator(_require_different_names)] = []
    """Dumps to take at certain times: `{name: nightly, tables: ["shop.*"], cron: "0 3 * * *"}`, or `every: 6h`."""
    lease_ttl: Duration = 60.0
    """How long a client's lease, which prevents the deletion of a dump, lasts without renewal."""
    formats: Annotated[list[FileFormat], Field(min_length=1), AfterValidator(_with_jsonl)] = [FileFormat.JSONL]
    """Formats of the files; each has all rows. `databus dump` reads `jsonl`, and the sink loads `parquet` faster."""
    part_size: Size = 64 * 2**20
    """Size, before compression, at which a file in format `jsonl` is closed and the next one begun."""
    connections: Annotated[int, Field(ge=1, le=64)] = 2
    """How many tables, or parts of a large table, are read at the same time, each over a connection of its own."""
    chunk_size: Size = 256 * 2**20
    """About how much of a table a chunked dump reads over one read view; also the part that one connection reads."""
    rows_per_second: Annotated[int, Field(ge=1)] | None = None
    """Limit of the rows that a dump reads from the database, over all connections; by default there is none."""
    replica_lag: Interval = 0
    """A dump pauses while a replica among `source.hosts` is further behind than this; 0: never."""
    url: HttpUrl = "http://127.0.0.1:8080"
    """Where the sink, the command `databus dump`, and a reader that starts at a dump find the dump API."""
    api_key: SecretStr = SecretStr("")
    """Key that these send to the dump API."""
    api_key_file: Path | None = None
    """File with this key, used instead of `api_key`."""
    listen: HostPort = "127.0.0.1:8080"
    """Address of the dump API and its `/healthz`, `/readyz` and `/metrics`."""
    api_keys: Annotated[list[ApiKey], AfterValidator(_require_different_names)] = []
    """Keys that the dump API accepts: `{name: lake, scopes: [read, write], key_file: FILE}`, or with `sha256: HASH`."""
    open: bool = False
    """Whether an API without `api_keys` may listen on other addresses than 127.0.0.1; its port must be protected."""
    requests_per_second: Annotated[int, Field(ge=1)] = 100
    """Requests per second that each key, or each address without one, may send to a replica of the dump API."""

    @model_validator(mode="after")
    def _load_key(self) -> Self:
        self.load_secret("api_key")
        return self
