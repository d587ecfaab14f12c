"""What is assumed of tables where the file does not say it."""

from collections.abc import Callable

import msgspec

from databus_binlog import ColumnMap, TableMap
from databus_changes.table_maps import assume_metadata


class Completion:
    """Names columns that the file does not name @1, @2, …, and assumes what it takes to read their values.

    Signs and character sets are missing with binlog_row_metadata=NO_LOG and before MySQL 8. What is assumed leaves the
    bytes as they are logged; the first time for each table, `warn` is called with one line.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._warned: set[tuple[str, str]] = set()

    def describe(self, table: TableMap) -> TableMap:
        """Complete a table map."""
        columns = tuple(map(assume_metadata, table.columns))
        if columns != table.columns and (table.schema, table.name) not in self._warned:
            self._warned.add((table.schema, table.name))
            self._warn(
                f"{table.schema}.{table.name}: signs and character sets are not logged (binlog_row_metadata); "
                "integers are taken for signed, strings for UTF-8"
            )
        return msgspec.structs.replace(table, columns=tuple(map(_named, columns, range(1, len(columns) + 1))))


def _named(column: ColumnMap, number: int) -> ColumnMap:
    return msgspec.structs.replace(column, name=column.name or f"@{number}")
