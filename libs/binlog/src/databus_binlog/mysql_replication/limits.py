"""Lists the settings and columns with which mysql-replication can't read a server's log.

Other causes stop the stream when they occur: a session's own settings, logs that were written under other settings,
single values (see `gate` and `values`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from databus_binlog.charsets import UTF8
from databus_binlog.mysql_replication.values import reads_text_in

#: runs one statement and returns its rows
Query: TypeAlias = Callable[[str], Awaitable[Sequence[Sequence[Any]]]]

#: variable, the value that the library needs, what the library does with other values
_SETTINGS = (
    ("binlog_row_metadata", "FULL", "guesses signs and character sets"),
    ("binlog_row_value_options", "", "reads one difference of a JSON value and drops the others"),
    ("binlog_transaction_compression", "OFF", "leaves compressed transactions out"),
    ("log_bin_compress", "OFF", "leaves compressed events out"),
    ("binlog_alter_two_phase", "OFF", "fails on ALTER TABLE"),
)
# A server without one of these variables behaves as if it had the needed value.
_OPTIONAL = {name for name, *_ in _SETTINGS} - {"binlog_row_metadata"}

_COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, c.data_type, c.column_type, COALESCE(c.character_set_name, '')
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
  AND t.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
ORDER BY c.table_schema, c.table_name, c.ordinal_position"""

_MAX_LISTED = 5  # columns in a line
_MAX_NAME_BYTES = 127  # of the name of a column, or a label of ENUM or SET
_COMPRESSED = " /*M!100301 COMPRESSED*/"  # at the end of column_type in MariaDB's information_schema
_NOT_ASCII = {"ucs2", "utf16", "utf16le", "utf32"}  # character sets that do not encode ASCII as ASCII


async def faults(variables: Mapping[str, str], query: Query, wanted: Callable[[str, str], bool] | None) -> list[str]:
    """List the settings of a server, and the columns of wanted tables, that the library can't cope with.

    There is one line for each cause.
    """
    return [*_settings(variables), *await _columns(query, wanted)]


def _settings(variables: Mapping[str, str]) -> list[str]:
    found = []
    for name, needed, consequence in _SETTINGS:
        value = variables.get(name, needed if name in _OPTIONAL else "missing")
        if {"1": "ON", "0": "OFF"}.get(value, value.upper()) != needed:
            found.append(f"{name} is {value}, with which mysql-replication {consequence}: set it to {needed!r}")
    return found


async def _columns(query: Query, wanted: Callable[[str, str], bool] | None) -> list[str]:
    found: dict[str, list[str]] = defaultdict(list)
    for schema, table, name, kind, declared, charset in await query(_COLUMNS):
        if (wanted is None or wanted(schema, table)) and (cause := _cause(name, kind.lower(), declared, charset)):
            found[cause].append(f"{schema}.{table}.{name}")
    return [
        f"mysql-replication can't read {cause}: exclude the tables that contain {_listed(columns)}"
        for cause, columns in found.items()
    ]


def _cause(name: str, kind: str, declared: str, charset: str) -> str:
    """Describe what the library can't read of a column; "" if it reads all of it."""
    if kind == "vector":
        return "VECTOR columns"
    if declared.endswith(_COMPRESSED):
        return "compressed columns"
    if len(name.encode()) > _MAX_NAME_BYTES:
        return f"column names of more than {_MAX_NAME_BYTES} bytes"
    if kind in {"enum", "set"}:
        return _labels_cause(kind, declared, charset)
    return f"text in {charset}" if charset and not reads_text_in(charset) else ""


def _labels_cause(kind: str, declared: str, charset: str) -> str:
    labels = declared.partition("(")[2].rstrip(")").removeprefix("'").removesuffix("'").split("','")
    if charset in _NOT_ASCII or not (charset in UTF8 or declared.isascii()):
        return f"labels in {charset}"
    if any(len(label.encode()) > _MAX_NAME_BYTES for label in labels):
        return f"labels of more than {_MAX_NAME_BYTES} bytes"
    return "empty labels" if kind == "enum" and "" in labels else ""


def _listed(columns: list[str]) -> str:
    more = len(columns) - _MAX_LISTED
    return ", ".join(columns[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
