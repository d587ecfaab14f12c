"""Replays the change log of a storm's lake: from an earlier version of a mirror, it must make the present one."""

from collections.abc import Sequence
from itertools import takewhile
from random import Random

from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.definitions import key_columns
from databus_core.settings.rules import Rule
from databus_spark.changelog import ChangeLog
from databus_spark.compare import Differences, differences
from databus_spark.errors import CannotRebuild
from databus_spark.folder import Folder
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import decode_state
from databus_spark.mirror_versions import version_as_of
from databus_spark.renames import renames
from databus_spark_sink.tables import TableStates


def replay(
    spark: SparkSession, layout: Layout, name: TableName, rules: Sequence[Rule], random: Random
) -> Differences | None:
    """Compare a mirror with the result of a replay that begins at a random transaction.

    None if the table has no mirror, or was loaded or renamed since.
    """
    log, types = ChangeLog(spark, layout.changes), TableStates(spark, layout.tables).types
    last = log.state().transaction
    folder = Folder(spark, f"{layout.root}/replayed/{last}-{'.'.join(name)}")
    paths = layout.mirror(*name), folder.path
    mirror, replayed = (Mirror(spark, log, name, path, types, rules) for path in paths)
    try:
        start = version_as_of(mirror.table, random.randrange(last))
    except CannotRebuild:
        return None
    if mirror.definition is None or start is None or start[1].dropped:
        return None
    version, state = start
    newer = takewhile(lambda commit: commit[0] != version, mirror.table.commits())
    if any(decode_state(text).base not in (None, state.base) for _, text in newer if text):
        return None
    replayed.begin(mirror.table.read(version), state)
    try:
        changes = replayed.changes(last)
        if list(renames({name: changes})):
            return None
        replayed.advance(changes, last)
        return differences(mirror.rows()[0], replayed.rows()[0], key_columns(mirror.definition))
    finally:
        folder.delete()
