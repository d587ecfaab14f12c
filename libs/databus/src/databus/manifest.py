"""What a dump says of itself: the manifest that dump-api writes and serves, and consumers read."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from databus.errors import DumpUnusable
from databus.events import Table
from databus_binlog import Flavor, Position


class State(StrEnum):
    """Where a dump is in its life."""

    #: accepted, not begun
    PENDING = "pending"
    #: rows are being written; nothing of it can be downloaded
    RUNNING = "running"
    #: immutable and whole
    COMPLETE = "complete"
    #: given up; `error` says why
    FAILED = "failed"
    #: its files are gone
    DELETED = "deleted"


class DumpFile(msgspec.Struct, frozen=True, kw_only=True):
    """One part: JSON lines in the `databus` format, compressed with zstd."""

    name: str
    #: `schema.table`
    table: str
    rows: int
    #: of the compressed file
    bytes: int
    sha256: str
    #: values are the texts of `compat: strict`, which lose some of what there is
    strict: bool = False


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A versioned snapshot, tied to a position of the source and to Kafka's offsets."""

    id: str
    #: of the pipeline
    pipeline: str
    state: State
    created: datetime
    format: str = "databus.jsonl.zst"
    completed: datetime | None = None
    #: server that was read: `flavor version identity`
    source: str = ""
    #: the snapshot holds exactly the transactions up to here
    position: Position | None = None
    #: topic → partition → offset, read before the position: where to go on in Kafka; a topic that is missing here did
    #: not exist yet and is read from its beginning
    kafka_offsets: dict[str, dict[int, int]] = {}
    tables: tuple[Table, ...] = ()
    files: tuple[DumpFile, ...] = ()
    error: str | None = None

    def files_of(self, tables: Iterable[Table]) -> list[list[DumpFile]]:
        """Give the parts of each table, in order. Raises DumpUnusable for a name of two: `a.b`.`c` and `a`.`b.c`."""
        named = Counter(f"{table.schema}.{table.name}" for table in self.tables)
        parts: defaultdict[str, list[DumpFile]] = defaultdict(list)
        for file in self.files:
            parts[file.table].append(file)
        names = [f"{table.schema}.{table.name}" for table in tables]
        if twice := next((name for name in names if named[name] > 1), None):
            raise DumpUnusable(f"dump {self.id} has two tables that are called {twice}: request a dump of only one")
        return [parts[name] for name in names]

    @property
    def server(self) -> str:
        """Identity of the server whose file the position names."""
        return self.source.rpartition(" ")[2]

    @property
    def flavor(self) -> Flavor:
        """Kind of the server that was read."""
        return "mariadb" if self.source.startswith("mariadb ") else "mysql"


class DumpList(msgspec.Struct, frozen=True):
    """All dumps, the newest first."""

    dumps: list[Manifest]


class DumpLease(msgspec.Struct, frozen=True):
    """A lease: the dump is not deleted for so many seconds from now."""

    lease: str
    expires_in: float
