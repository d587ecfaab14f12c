"""A table while a dump reads it: in ranges of its primary key, if it is large, and into files of each format.

The files of a range have numbers of their own. The manifest lists the ranges in the order of the key.
"""

from databus_binlog.session import Session
from databus_changes.snapshot.ranges import KeyRange, key_ranges, leading_integer
from databus_changes.snapshot.select import Select, select
from databus_core.manifest import DumpFile, FileFormat
from databus_core.settings import Dumps
from databus_dump_api.parts import PartWriter
from databus_dump_api.store import Output
from databus_dump_api.tables import PublishedTable, TableState

#: rows of a range, however large they are, or however few the server believes there are
_LEAST_ROWS = 1000
#: bytes of a Parquet file at which the next one is begun
_PARQUET_PART = 128 * 2**20


class TableCopy:
    """The ranges and the files of a table."""

    def __init__(self, settings: Dumps, output: Output, state: TableState, published: PublishedTable) -> None:
        self._settings = settings
        self._output = output
        self.state = state
        self.published = published
        #: in the order of the key
        self.ranges = [KeyRange()]
        self._files: dict[int, list[DumpFile]] = {}

    async def divide(self, session: Session, *, chunked: bool = False) -> None:
        """Find the ranges, if the table is larger than `dumps.chunk_size`; InnoDB may estimate twice its size.

        Ranges are for several connections, or for chunks: then consumers must see the column by which they are made.
        """
        state, size = self.state, self._settings.chunk_size
        useful = leading_integer(self.published.table) if chunked else self._settings.connections > 1
        if state.estimated_bytes > size and useful:
            rows = max(_LEAST_ROWS, state.estimated_rows * size // state.estimated_bytes)
            self.ranges = await key_ranges(session, state.table, rows)

    def select(self, number: int) -> Select:
        """Return the query of a range's rows."""
        return select(self.state.table, self.ranges[number].condition(self.state.table))

    def parts(self, number: int) -> list[PartWriter]:
        """Make a writer for each format of a range's files."""
        prefix = f"{number + 1:05d}." if len(self.ranges) > 1 else ""
        return [
            PartWriter(self._output, self.published.table, each, size, strict=self.published.strict, prefix=prefix)
            for each, size in formats_of_rows(self._settings).items()
        ]

    def complete(self, number: int, files: list[DumpFile]) -> None:
        """Record the files of a range."""
        self._files[number] = files

    @property
    def is_complete(self) -> bool:
        """Whether all ranges are complete."""
        return len(self._files) == len(self.ranges)

    def files(self) -> list[DumpFile]:
        """Return all files, by format and in the order of the key."""
        files = [file for number in range(len(self.ranges)) for file in self._files[number]]
        return sorted(files, key=lambda file: file.format)


def formats_of_rows(settings: Dumps) -> dict[FileFormat, int]:
    """Return the formats of files that are written while tables are read, and the size of a part in each."""
    sizes = {
        FileFormat.JSONL: settings.part_size,
        FileFormat.PARQUET: _PARQUET_PART,
        FileFormat.PARQUET_TYPED: _PARQUET_PART,
    }
    return {each: size for each, size in sizes.items() if each in settings.formats}
