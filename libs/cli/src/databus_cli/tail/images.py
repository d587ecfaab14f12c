"""Row images of a change, as commands about binlogs have them: a table with types, and the texts of its columns."""

from functools import lru_cache

from msgspec.structs import replace

from databus_binlog import ABSENT, Value
from databus_core.definitions import sized_type
from databus_core.events import Table


@lru_cache(1000)
def typed(table: Table) -> Table:
    """Return the definition of a table in messages, which have only COLUMN_TYPE, with the columns' types."""
    columns = [
        replace(column, type=sized_type(column)[0], unsigned="unsigned" in column.raw_type.lower())
        for column in table.columns
    ]
    return replace(table, columns=tuple(columns))


def image_of(table: Table, texts: dict[str, str | bytes | None]) -> list[Value]:
    """Return the texts of a row, ABSENT where it has none."""
    return [_value(texts[column.name]) if column.name in texts else ABSENT for column in table.columns]


def _value(text: str | bytes | None) -> Value:
    return text.encode() if isinstance(text, str) else text
