"""What the lake needs of a table format: `databus_spark.delta` and `databus_spark.iceberg` provide it.

All changes are atomic: readers see all of a commit or nothing, and a commit that was interrupted has changed nothing.
Each commit of the sink carries a text, in which it stores how far the table has come (for a mirror: the last
transaction, and the definition of its rows). So rows and text never disagree.

While rows are written, the text is a setting of the table's session, so two threads must not write in one session. The
rows may be of another session.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from databus_spark.types import Columns, identifier

#: column → lowest and highest value, as SQL literals
Ranges: TypeAlias = Mapping[str, tuple[str, str]]


class LakeTable(Protocol):
    """A table of the lake, as one session sees it. It has one writer; many may read."""

    spark: SparkSession
    path: str

    def __init__(self, spark: SparkSession, path: str) -> None: ...

    @property
    def exists(self) -> bool:
        """Whether there is such a table."""
        ...

    def read(self, version: int | None = None) -> DataFrame:
        """Return its rows and columns, as of now or of a version."""
        ...

    def text(self) -> str:
        """Return the text of the table as it is; empty if there is none. Commits without a text are not ours."""
        return self.last()[1]

    def last(self) -> tuple[int, str]:
        """Return the last version that has a text, and the text. It is empty if there is none."""
        ...

    def newest(self) -> int:
        """Return the version that readers get, also if its commit is not ours."""
        ...

    def written(self) -> float:
        """Return when the last commit that has a text was made, in seconds since the epoch.

        It is 0 if that was before many commits of upkeep.
        """
        ...

    def commits(self, limit: int | None = None) -> list[tuple[int, str]]:
        """Return versions and their texts among the last `limit` ones, or among all, the newest first.

        A version that was made by upkeep has the text of the one before it, if that is among them. A greater version
        need not be a newer one.
        """
        ...

    def append(self, rows: DataFrame, text: str, identity: str) -> None:
        """Append rows, unless rows of this identity were appended since the last overwrite; create the table if needed.

        That holds, too, if another writer appends rows of the same identity at the same time: one of both adds nothing,
        or fails.
        """
        ...

    def overwrite(
        self, rows: DataFrame, text: str, partitions: Sequence[str] = (), skipping: Sequence[str] = ()
    ) -> None:
        """Replace rows and columns; create the table, partitioned by these columns, if there is none.

        `rows` may be read from the table itself. Earlier versions can still be read, with their own columns.
        `skipping`: by which columns readers can skip files, now and later; empty: by those that the format chooses.
        """
        ...

    def widens(self, kind: str, into: str) -> bool:
        """Return whether `add_columns` can give a column of one type another type that represents all its values."""
        ...

    def add_columns(self, added: Columns, wider: Columns, text: str) -> None:
        """Add columns, which are NULL in all rows, and widen types, without writing rows.

        This alone need not be atomic: if it is interrupted, some columns may be there without the text, and it is
        called again.
        """
        ...

    def merge(self, rows: DataFrame, on: Sequence[str], removed: str, text: str, newer: str, ranges: Ranges) -> None:
        """Delete the rows with the keys of `rows` for which `removed` is true, and write the others.

        A row that exists is only replaced if `newer` is true. Both are SQL conditions over the aliases `t` and `s`.
        `rows` are read several times. All of them are in these `ranges`, so files without such rows are not read.
        Columns that only the table has are NULL in new rows, columns that only `rows` has are ignored.
        """
        ...

    def note(self, text: str) -> None:
        """Commit a text without changing anything else."""
        ...

    # --- upkeep, which keeps the text

    def compact(self) -> None:
        """Write small files together. Of this and a merge at the same time, one may fail."""
        ...

    def discard(self, condition: str) -> None:
        """Delete rows that nobody needs any more."""
        ...

    def vacuum(self, seconds: float) -> None:
        """Delete the files that no version of the last `seconds` has. Earlier versions cannot be read any more."""
        ...

    def files(self) -> int:
        """Return how many files have its rows."""
        ...

    def keep_history(self, seconds: float) -> None:
        """Keep the history of versions so long. A commit at the same time may fail."""
        ...

    def properties(self) -> dict[str, str]:
        """Return the table's properties."""
        ...

    def set_properties(self, properties: dict[str, str]) -> None:
        """Set properties. A commit at the same time may fail."""
        ...

    def columns(self) -> Columns:
        """Return its columns."""
        return dict(self.read().dtypes)

    def empty(self, columns: Columns, text: str, partitions: Sequence[str] = (), skipping: Sequence[str] = ()) -> None:
        """Replace rows and columns by these columns without rows; create the table if there is none."""
        nulls = ", ".join(f"cast(null as {kind}) as {identifier(column)}" for column, kind in columns.items())
        self.overwrite(self.spark.sql(f"SELECT {nulls} WHERE false"), text, partitions, skipping)
