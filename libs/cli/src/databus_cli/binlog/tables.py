"""Names and other metadata of columns that the binlog does not describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from databus_binlog import ColumnMap, FormatDescription, Query, TableMap
from databus_changes.table_maps import assume_metadata

if TYPE_CHECKING:  # at run time it is imported only if there are definitions
    from databus_cli.binlog.definitions import Definitions, Known


class Completion:
    """Completes table maps by definitions, as far as these are given and fit; the rest is assumed.

    Columns without known names are @1, @2, …. Signs and character sets are not logged with binlog_row_metadata=NO_LOG,
    and not before MySQL 8 and MariaDB 10.5: integers are then treated as signed, and strings as UTF-8, which leaves
    their bytes as they are logged. `warn` is called with one line, once for each table.
    """

    def __init__(self, warn: Callable[[str], None], definitions: Definitions | None = None) -> None:
        self._warn = warn
        self._warned: set[tuple[str, str]] = set()
        self._definitions = definitions
        self._known: Known | None = None

    @property
    def by_statement(self) -> bool:
        """Whether `statement` has to be called before the rows after it are decoded."""
        return self._definitions is not None

    def start(self, head: FormatDescription) -> None:
        """Prepare for the first file, given its FormatDescription."""
        if self._definitions is not None and self._known is None:
            from databus_cli.binlog.definitions import Known

            self._known = Known(self._definitions, head)

    def statement(self, event: Query) -> None:
        """Apply a statement to the definitions."""
        if self._known is not None:
            self._known.apply(event)

    def describe(self, table: TableMap) -> TableMap:
        """Complete a table map; warn if signs or character sets had to be assumed."""
        if self._known is not None:
            table = self._known.describe(table)
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
