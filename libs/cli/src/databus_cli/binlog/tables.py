"""Assumptions about columns that the file does not describe."""

from collections.abc import Callable

import msgspec

from databus_binlog import ColumnMap, TableMap
from databus_changes.table_maps import assume_metadata


class Completion:
    """Gives columns without names the names @1, @2, …, and fills in signs and character sets that are not logged.

    Signs and character sets are not logged with binlog_row_metadata=NO_LOG, and not before MySQL 8 and MariaDB 10.5.
    Integers are treated as signed, and strings as UTF-8, which leaves their bytes as they are logged. `warn` is called
    with one line, once for each table.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._warned: set[tuple[str, str]] = set()

    def describe(self, table: TableMap) -> TableMap:
        """Complete a table map; warn if signs or character sets had to be assumed."""
        columns = tuple(map(assume_metadata, table.columns))
        if columns != table.columns and (table.schema, table.name) not in self._warned:
            self._warned.add((table.schema, table.name))
            self._warn(
                f"{table.full_name}: signs and character sets are not logged (binlog_row_metadata); "
                "integers are assumed to be signed, strings to be UTF-8"
            )
        return msgspec.structs.replace(table, columns=tuple(map(_named, columns, range(1, len(columns) + 1))))


def _named(column: ColumnMap, number: int) -> ColumnMap:
    return msgspec.structs.replace(column, name=column.name or f"@{number}")
