"""A dump of some tables that is fetched in the background, and loaded table by table between batches."""

import asyncio
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.dump_client import DumpApi
from databus_core.errors import DatabusError, DumpUnusable
from databus_core.events import Table
from databus_core.settings import Settings
from databus_core.settings.rules import default_rule
from databus_core.table_filter import TableFilter
from databus_spark.dump_files import Say
from databus_spark_sink.lake import Lake
from databus_spark_sink.loads.dumps import ReadyDump, load_mirror, take


class DumpJob:
    """One dump. `is_requested`: an operator wants the tables to be loaded, also if they are not parked."""

    def __init__(
        self, settings: Settings, spark: SparkSession, lake: Lake, pattern: str, say: Say, *, is_requested: bool
    ) -> None:
        """Begin to fetch a dump of the tables that match a pattern."""
        self._settings = settings
        self._spark = spark
        self._lake = lake
        self._pattern = pattern
        self._say = say
        self._is_requested = is_requested
        self._fetching = asyncio.create_task(self._fetch())
        #: the tables that are not loaded yet; None before the first one
        self._left: list[Table] | None = None
        #: parked tables that the database does not have any more
        self._gone: list[TableName] = []
        #: the first error of a table; the others are loaded nevertheless
        self._error: Exception | None = None

    @property
    def is_fetched(self) -> bool:
        """Whether the dump is here, or could not be fetched."""
        return self._fetching.done()

    def load_next(self) -> bool:
        """Load the next table; return whether there was one.

        Raises what went wrong when the dump was fetched and, at the end, when one of its tables was loaded.
        """
        dump = self._fetching.result()
        if self._left is None:
            if self._is_requested and not any(table.primary_key for table in dump.tables):
                raise DumpUnusable(f"{self._pattern} has no primary key, or does not match spark.tables any more")
            self._left = [table for table in dump.tables if self._is_due(table, dump)]
            self._gone = self._tables_not_in(dump)
        if self._gone:
            self._lake.empty_missing(self._gone.pop(), dump.transaction)
            return True
        if self._left:
            table = self._left.pop()
            try:
                if self._is_due(table, dump):
                    load_mirror(self._spark, self._lake, dump, table)
            except (DatabusError, PySparkException, Py4JError) as error:
                self._error = self._error or error
            return True
        if self._error:
            raise self._error
        return False

    @property
    def is_complete(self) -> bool:
        """Whether no table of the dump is in doubt that could be loaded again."""
        parked = self._lake.tables.parked
        found = (parked.get((table.schema, table.name)) for table in self._fetching.result().tables)
        return not any(each and each.heals for each in found)

    def delete_files(self) -> None:
        """Delete the files of the dump."""
        if not self._fetching.exception():
            self._fetching.result().folder.delete()

    async def close(self) -> None:
        """Stop fetching."""
        self._fetching.cancel()
        with suppress(asyncio.CancelledError, DatabusError):
            await self._fetching

    async def _fetch(self) -> ReadyDump:
        self._say("waiting until dump-api has taken a dump")
        tables = self._lake.tables
        complete = set() if self._is_requested else set(tables.known) - tables.parked.keys()
        async with DumpApi.of(self._settings.dumps) as api:
            return await take(self._settings, self._say, api, [self._pattern], self._lake.downloads, complete)

    def _tables_not_in(self, dump: ReadyDump) -> list[TableName]:
        """Return the parked tables that a dump of the pattern could have, and does not have."""
        had = {(table.schema, table.name) for table in dump.manifest.tables}
        rules, of_pattern = self._settings.publisher.rules, TableFilter([self._pattern])
        return [
            name
            for name, parked in self._lake.tables.parked.items()
            if parked.heals and parked.transaction <= dump.transaction and name not in had
            if of_pattern.matches(*name) and self._settings.source.captures(*name) and default_rule(rules, *name)
        ]

    def _is_due(self, table: Table, dump: ReadyDump) -> bool:
        """Return whether a table is to be loaded: its doubt may have ended meanwhile, or may be newer than the dump."""
        name = (table.schema, table.name)
        if parked := self._lake.tables.parked.get(name):
            return parked.transaction <= dump.transaction
        return self._is_requested or name not in self._lake.tables.known
