"""Keep the lake small and fast to read: compact small files, delete old ones, and old days of the change log.

This changes neither rows nor how far a table has come. Where it conflicts with a batch that is written at the same
time, one of both fails and is tried again.
"""

import time
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from databus_core.metrics import sink as metrics
from databus_core.settings import Maintain
from databus_spark.changelog import ChangeLog
from databus_spark.folder import Folder
from databus_spark.formats import open_table
from databus_spark.layout import Layout
from databus_spark.table import LakeTable

#: files younger than this, in seconds, may be those of a batch that is being written
_YOUNGEST = 3600.0
#: downloads to which nothing was written for so many seconds are not used any more
_ABANDONED = 86_400.0


class Upkeep:
    """The upkeep of a lake, in a session of its own."""

    def __init__(self, spark: SparkSession, layout: Layout, settings: Maintain) -> None:
        self._spark = spark.newSession()
        self._layout = layout
        self._settings = settings
        self._keep = max(settings.keep, _YOUNGEST)

    def trim(self) -> None:
        """Delete the days of the change log that are older than the retention and that all mirrors have."""
        if self._settings.log_retention and self._in_use(self._layout.changes):
            log = ChangeLog(self._spark, self._layout.changes)
            log.trim(datetime.now(UTC).date() - timedelta(seconds=self._settings.log_retention))

    def sweep(self) -> None:
        """Delete the downloads that a sink or a command left when it was killed.

        A sink that uses them after all downloads them again.
        """
        Folder(self._spark, self._layout.downloads).delete_older(_ABANDONED)

    def keep_history(self, path: str) -> None:
        """Let the table format keep a table's history for `spark.maintain.keep`."""
        if table := self._in_use(path):
            table.keep_history(self._keep)

    def compact(self, name: str, path: str) -> None:
        """Write the small files of a table together, if it was written since that was done, and count its files."""
        if table := self._in_use(path):
            if table.commits(1):
                table.compact()
            metrics.FILES.labels(name).set(table.files())

    def _in_use(self, path: str) -> LakeTable | None:
        """Return a table, if something was written to it since the beginning of the history that is kept.

        Delta deletes older commits after new ones. So commits of upkeep alone might delete the last one with a text.
        """
        table = open_table(self._spark, path)
        return table if table.exists and table.written() > time.time() - self._keep else None

    def vacuum(self, path: str) -> None:
        """Delete a table's files that only versions older than `spark.maintain.keep` have."""
        table = open_table(self._spark, path)
        if table.exists:
            table.vacuum(self._keep)
