"""The command `rebuild`: make the rows that a table had at any transaction of the change log into a new table.

They begin with the newest version of the mirror that is not newer, or with the statement that created or emptied the
table. The change log has the rest. Nothing else in the lake is changed.
"""

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.errors import UsageError
from databus_core.events import full_name
from databus_core.settings.rules import Rule
from databus_core.table_filter import TableFilter
from databus_spark.changelog import ChangeLog
from databus_spark.errors import CannotRebuild, TableParked
from databus_spark.folder import Folder
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_versions import version_as_of
from databus_spark.renames import renames
from databus_spark.sequences import transaction_of
from databus_spark.types import TypeOptions
from databus_spark_sink.tables import Gap, TableStates

#: folders of the lake's own tables
_OWN = {"changes", "mirror", "_databus"}


def rebuild(
    spark: SparkSession, layout: Layout, name: TableName, folder: str, at: str | None, rules: Sequence[Rule]
) -> None:
    """Rebuild a table in a folder of the lake, as of a sequence, transaction or time, by default as of now.

    `rules` are those by which its rows are published. Raises UsageError and CannotRebuild.
    """
    states, log = TableStates(spark, layout.tables), ChangeLog(spark, layout.changes)
    if name not in states.known:
        raise UsageError(f"{layout.root} has no table {full_name(*name)}: its folder mirror/ shows which it has")
    to = Folder(spark, _path(layout, folder))
    if to.exists:
        raise UsageError(f"--to: {to.path} exists already: remove it, or choose another folder")
    paths = to.path, layout.mirror(*name)
    target, source = (Mirror(spark, log, name, path, states.types, rules) for path in paths)
    transaction = _transaction(log, at)
    try:
        _require_followed(source, states, transaction)
        _begin(target, source, log, transaction, states.types)
        _follow(target, log, transaction, states.gaps(name))
    except (CannotRebuild, TableParked) as error:
        to.delete()  # it may have rows of an earlier transaction
        text = f"the lake does not have the rows of {full_name(*name)} at transaction {transaction} any more"
        raise CannotRebuild(f"{text}: {error}") from error
    rows = target.table.read().count()
    sys.stdout.write(f"{full_name(*name)} as of transaction {transaction}: {rows:,} rows in {to.path}\n")


def _require_followed(source: Mirror, states: TableStates, transaction: int) -> None:
    """Require that a mirror has not been in doubt before a transaction: its changes may be missing in the log."""
    if source.state is None or transaction <= source.state.transaction:
        return
    if parked := states.parked.get(source.name):
        raise CannotRebuild(f"it is parked, because {parked.reason}")
    if not TableFilter(states.patterns).matches(*source.name):
        raise CannotRebuild("it is left out of spark.tables")


def _begin(target: Mirror, source: Mirror, log: ChangeLog, transaction: int, types: TypeOptions) -> None:
    """Begin with a version of the mirror, unless it cannot be read any more, or the log does not continue it."""
    start = version_as_of(source.table, transaction)
    if start is None or start[1].transaction < log.trimmed or start[1].types != types:
        return
    version, state = start
    try:
        target.begin(source.table.read(version), state)
    except (PySparkException, Py4JError) as error:
        if not _resets(log, target.name, transaction):
            text = "the files of its mirror's version may have been deleted (spark.maintain.keep)"
            raise CannotRebuild(text) from error


def _follow(target: Mirror, log: ChangeLog, transaction: int, gaps: list[Gap]) -> None:
    """Add what the log has up to a transaction, if it has no gaps there."""
    resets = _resets(log, target.name, transaction)
    if target.state is None and not resets:
        raise CannotRebuild("neither a version of its mirror nor its CREATE TABLE is left (spark.maintain)")
    # Further rows of the transaction of a reset may follow it.
    begin = max([target.state.transaction if target.state else -1, *(each - 1 for each in resets)])
    for gap in gaps:
        if gap.first <= transaction and begin < gap.last:
            raise CannotRebuild(f"the change log may lack changes of it in transactions {gap.first} to {gap.last}")
    changes = target.changes(transaction)
    for rename in renames({target.name: changes}):
        if rename.transaction > max(resets, default=-1):
            raise CannotRebuild(f"it was renamed at transaction {rename.transaction}")
    target.advance(changes, transaction)
    if not target.table.exists:
        raise CannotRebuild("it has no mirror: it had no primary key, or it was dropped")


def _resets(log: ChangeLog, name: TableName, transaction: int) -> list[int]:
    """Return the transactions after which a table had no rows, whatever was before, and the log has all changes."""
    statements = log.changes_of(name, log.trimmed, transaction, "_query is not null").statements
    return [each.transaction for each in statements if each.is_reset]


def _transaction(log: ChangeLog, at: str | None) -> int:
    """Return the last transaction whose changes are wanted."""
    if not log.exists:
        raise UsageError("the lake has no change log: check spark.lake")
    end = log.state().transaction
    if at is None:
        return end
    if re.fullmatch(r"\d{16}-\d{10}", at):
        wanted: int | None = transaction_of(at)
    elif at.isdecimal():
        wanted = int(at)
    else:
        wanted = log.transaction_at(_moment(at))
    if wanted is None or wanted > end:
        raise UsageError(f"--at {at}: the change log ends with transaction {end}, or begins later")
    return wanted


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"--at {text}: must be a sequence, a transaction, or a time as 2026-11-20T10:00:00Z"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _path(layout: Layout, folder: str) -> str:
    parts = folder.strip("/").split("/")
    if parts[0] in {*_OWN, ""} or ".." in parts:
        raise UsageError(f"--to {folder}: must be another folder of the lake, for example restored/orders")
    return "/".join((layout.root, *parts))
