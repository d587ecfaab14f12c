"""The manifest of a dump and the other bodies of dump-api's answers: dump-api writes them, its clients read them."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from databus_binlog import Flavor, Position
from databus_core.errors import DumpUnusable
from databus_core.events import Table


class State(StrEnum):
    """The state of a dump."""

    #: requested, not started
    PENDING = "pending"
    #: being written; nothing can be downloaded yet
    RUNNING = "running"
    #: complete and immutable
    COMPLETE = "complete"
    #: ended without a result; `error` is the reason
    FAILED = "failed"
    #: ended without a result because a client cancelled it
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether the dump stays in this state until it is deleted."""
        return self not in (State.PENDING, State.RUNNING)


class FileFormat(StrEnum):
    """The format of a dump's files."""

    #: JSON lines in the `databus` format, compressed with zstd
    JSONL = "jsonl"
    #: Parquet, compressed with zstd: the table's columns, with the text that JSON lines have in base64
    PARQUET = "parquet"
    #: Parquet whose columns have types, as far as these have all values
    PARQUET_TYPED = "parquet-typed"
    #: records of a format of the publisher as JSON lines, compressed with zstd; made from the dump's JSONL files
    DEBEZIUM_JSON = "debezium-json"
    MAXWELL_JSON = "maxwell-json"
    CANAL_JSON = "canal-json"


class Mode(StrEnum):
    """How the tables of a dump are read."""

    #: all rows as of one position, over read views that are open until all are read
    VIEW = "view"
    #: in chunks, each over a short read view at a position of its own; it is resumed after a crash
    CHUNKED = "chunked"


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a table in a chunked dump: the rows whose leading key column has a value in a range."""

    #: `schema.table`
    table: str
    #: the lowest value; null: there is no limit
    low: int | None = None
    #: the value behind the highest; null: there is no limit
    high: int | None = None
    #: the rows are exactly those after the transactions up to this position; null until they are read
    position: Position | None = None


class DumpFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a table."""

    name: str
    format: FileFormat = FileFormat.JSONL
    #: `schema.table`
    table: str
    rows: int
    #: size of the file, which is compressed
    bytes: int
    #: SHA-256 of the file, in hexadecimal
    sha256: str
    #: whether the values were written with the option `compat: strict`, whose texts lose information
    strict: bool = False
    #: index of the chunk that it belongs to; null unless the dump is chunked
    chunk: int | None = None


class DumpProgress(msgspec.Struct, frozen=True):
    """How far a running dump has come."""

    #: rows written so far
    rows: int
    #: bytes of the files so far
    bytes: int
    #: rows of all tables, as the server estimates them; a rule may publish fewer
    estimated_rows: int
    #: seconds until the end at the present speed; null before the first row
    eta_seconds: float | None = None


class PipelineMoment(msgspec.Struct, frozen=True):
    """The moment when the pipeline had passed a dump's position."""

    #: ordinal of the last transaction that was published
    transaction: int
    #: topic → partition → end of the topic: all records from there on are newer than the dump
    offsets: dict[str, dict[int, int]]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A versioned snapshot, tied to a position of the source and to Kafka offsets."""

    id: str
    #: name of the pipeline
    pipeline: str
    state: State
    #: when the dump was requested
    created: datetime
    #: each of them has all rows of the dump
    formats: tuple[FileFormat, ...] = (FileFormat.JSONL,)
    #: when the dump ended
    completed: datetime | None = None
    #: the server that was read, as `flavor version identity`
    source: str = ""
    mode: Mode = Mode.VIEW
    #: the snapshot contains exactly the transactions up to this position; null if the dump is chunked
    position: Position | None = None
    #: parts of the tables, each with a position of its own; empty unless the dump is chunked
    chunks: tuple[Chunk, ...] = ()
    #: when the server created each of the tables; empty unless the dump is chunked
    versions: tuple[str, ...] = ()
    #: how often a chunked dump was begun since a chunk was last complete
    attempts: int = 0
    #: topic → partition → offset from which to read Kafka after loading the dump. The offsets were read before the
    #: position. A topic not listed did not exist yet, or has no table of the dump; it is read from its beginning.
    kafka_offsets: dict[str, dict[int, int]] = {}
    #: end of the dead-letter topic, read with `kafka_offsets`; the dump has the changes of the dead letters before it
    dead_letter_offset: int = 0
    #: ordinal of the last transaction that the pipeline had published then; the dump has it and all before. 0: none
    transaction: int = 0
    #: when the pipeline had passed `position`; null until then, and if the pipeline fails over to another server before
    passed: PipelineMoment | None = None
    #: fingerprint of the rules by which the rows are published (`databus_core.routes`); empty: not known
    rules: str = ""
    #: the patterns of the request; None if it asked for all tables
    requested: tuple[str, ...] | None = None
    #: name of the schedule that requested it; empty: a client did
    schedule: str = ""
    tables: tuple[Table, ...] = ()
    files: tuple[DumpFile, ...] = ()
    #: why the dump has no result
    error: str | None = None
    #: null unless the dump is running
    progress: DumpProgress | None = None

    def files_of(self, tables: Iterable[Table], file_format: FileFormat) -> list[list[DumpFile]]:
        """List the files of each of these tables in one format, in the order of `tables`.

        Raises DumpUnusable if the dump does not have this format, and for a name that two tables of the dump share:
        `a.b`.`c` and `a`.`b.c` are both `a.b.c`.
        """
        if file_format not in self.formats:
            raise DumpUnusable(
                f"dump {self.id} has no files in format {file_format}: add it to dumps.formats and request a new dump"
            )
        count = Counter(table.full_name for table in self.tables)
        files: defaultdict[str, list[DumpFile]] = defaultdict(list)
        for file in self.files:
            if file.format is file_format:
                files[file.table].append(file)
        names = [table.full_name for table in tables]
        if shared := next((name for name in names if count[name] > 1), None):
            raise DumpUnusable(f"dump {self.id} has two tables named {shared}: request a dump with only one of them")
        return [files[name] for name in names]

    @property
    def end(self) -> Position | None:
        """The position after which the dump has no transaction so far; None before the first rows are complete."""
        positions = [chunk.position for chunk in self.chunks if chunk.position]
        return max(positions, key=lambda position: position.log_order) if positions else self.position

    @property
    def server(self) -> str:
        """Identity of the server that was read. The binlog file of the position is a file of this server."""
        return self.source.rpartition(" ")[2]

    @property
    def flavor(self) -> Flavor:
        """Kind of the server that was read."""
        return "mariadb" if self.source.startswith("mariadb ") else "mysql"


class DumpList(msgspec.Struct, frozen=True):
    """Dumps, the newest first."""

    dumps: list[Manifest]
    #: the `cursor` of the next page; null: there are no more
    next: str | None = None


class DumpEvent(msgspec.Struct, frozen=True):
    """The data of a server-sent event."""

    #: id of the dump
    id: str
    state: State
    #: null unless the dump is running
    progress: DumpProgress | None = None
    #: why the dump has no result
    error: str | None = None


class DumpLease(msgspec.Struct, frozen=True):
    """A lease: until it expires, the dump is not deleted."""

    #: id of the lease
    lease: str
    #: seconds from now
    expires_in: float
