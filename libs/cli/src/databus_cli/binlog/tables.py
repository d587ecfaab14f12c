"""What is assumed of tables where the file does not say it."""

from collections.abc import Callable

import msgspec

from databus_binlog import ColumnMap, FieldType, TableMap

_T = FieldType
_INTEGERS = {_T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG}
_STRINGS = {_T.STRING, _T.VAR_STRING, _T.VARCHAR, _T.BLOB, _T.VARCHAR_COMPRESSED, _T.BLOB_COMPRESSED}


class Completion:
    """Names columns that the file does not name @1, @2, … and fills in what it takes to read their values.

    Signs and character sets are missing with binlog_row_metadata=NO_LOG and before MySQL 8. Integers are taken for
    signed and strings for UTF-8: that leaves their bytes as they are logged. What else is missing stays so.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._told: set[tuple[str, str]] = set()

    def describe(self, table: TableMap) -> TableMap:
        """Complete a table."""
        columns = tuple(_completed(column, place) for place, column in enumerate(table.columns, start=1))
        if any(map(_differ, table.columns, columns)) and (table.schema, table.name) not in self._told:
            self._told.add((table.schema, table.name))
            self._warn(
                f"{table.schema}.{table.name}: signs and character sets are not logged (binlog_row_metadata); "
                "integers are taken for signed, strings for UTF-8"
            )
        return msgspec.structs.replace(table, columns=columns)


def _completed(column: ColumnMap, place: int) -> ColumnMap:
    return msgspec.structs.replace(
        column,
        name=column.name or f"@{place}",
        unsigned=False if column.unsigned is None and column.type in _INTEGERS else column.unsigned,
        charset="utf8mb4" if column.charset is None and column.type in _STRINGS else column.charset,
    )


def _differ(old: ColumnMap, new: ColumnMap) -> bool:
    return (old.unsigned, old.charset) != (new.unsigned, new.charset)
