"""What a dump says of itself: the manifest that dump-api writes and serves, and consumers read."""

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

    def files_of(self, table: Table) -> list[DumpFile]:
        """Give a table's parts, in order. Raises DumpUnusable if their name means two tables: `a.b`.`c`, `a`.`b.c`."""
        name = f"{table.schema}.{table.name}"
        if sum(f"{other.schema}.{other.name}" == name for other in self.tables) > 1:
            raise DumpUnusable(f"dump {self.id} has two tables that are called {name}: request a dump of only one")
        return [file for file in self.files if file.table == name]

    @property
    def server(self) -> str:
        """Identity of the server whose file the position names."""
        return self.source.rpartition(" ")[2]

    @property
    def flavor(self) -> Flavor:
        """Kind of the server that was read."""
        return "mariadb" if self.source.startswith("mariadb ") else "mysql"
