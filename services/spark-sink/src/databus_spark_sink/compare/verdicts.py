"""The result of comparing a table with the database."""

from dataclasses import dataclass

from databus_changes.tables import TableName
from databus_core.errors import DatabusError
from databus_core.events import full_name
from databus_spark.compare import Differences
from databus_spark_sink.tables import Parked


@dataclass(frozen=True)
class Verdict:
    """The result for a table, whose full name this is."""

    table: str
    text: str
    is_equal: bool = True
    #: the keys of some rows that differ
    examples: str = ""
    #: rows that differ; None: they were not compared
    differing: int | None = None
    #: why the table could not be compared
    error: Exception | None = None

    @property
    def line(self) -> str:
        """What is printed: it may quote keys, so it must not be logged."""
        return f"{self.table}: {self.text}{self.examples}"


def compared(name: TableName, found: Differences) -> Verdict:
    """Mirror and table were compared."""
    if found.equal:
        return Verdict(full_name(*name), f"equal, {found.rows:,} rows", differing=0)
    differing = found.missing + found.invented + found.different
    examples = f"; for instance {'; '.join(found.examples)}"
    return Verdict(full_name(*name), f"DIFFERS: {found.counts}", False, examples, differing)


def without_mirror(name: TableName, rows: int) -> Verdict:
    """The database has a table that the lake should have, too. An empty one counts as one row that differs."""
    text = f"HAS NO MIRROR: load it with databus-spark-sink resync {full_name(*name)}"
    return Verdict(full_name(*name), text, False, differing=max(rows, 1))


def gone(name: TableName, rows: int) -> Verdict:
    """The lake has a table that the database does not have."""
    text = f"the database does not have this table (or it is not captured any more), its mirror has {rows:,} rows"
    return Verdict(full_name(*name), text, not rows, differing=rows)


def without_key(name: TableName) -> Verdict:
    """A table that gets no mirror."""
    return Verdict(full_name(*name), "has no primary key, and so no mirror")


def parked(name: TableName, found: Parked) -> Verdict:
    """The mirror does not follow its table."""
    table = full_name(*name)
    return Verdict(table, f"PARKED, because {found.reason}: {found.advice(table)}", False)


def changed(name: TableName) -> Verdict:
    """The table was created, dropped or renamed after the dump."""
    return Verdict(full_name(*name), "not compared, because it was created, dropped or renamed meanwhile")


def failed(name: TableName, error: Exception) -> Verdict:
    """The table could not be compared."""
    return Verdict(full_name(*name), f"could not be compared: {reason_of(error)}", False, error=error)


def reason_of(error: Exception) -> str:
    """Return the message of one of our errors; that of another one may quote a row."""
    return str(error) if isinstance(error, DatabusError) else type(error).__name__
