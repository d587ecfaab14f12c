"""Select tables by `schema.table` patterns with `*` and `?`. All other characters stand for themselves."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


@lru_cache(maxsize=1024)
def name_pattern(pattern: str) -> re.Pattern[str]:
    """Turn a pattern into a regular expression."""
    return re.compile("".join({"*": ".*", "?": "."}.get(c) or re.escape(c) for c in pattern), re.DOTALL)


def sample(pattern: str) -> tuple[str, str]:
    """Return schema and name of a table, which need not exist, that matches a `schema.table` pattern."""
    schema, _, table = pattern.replace("*", "x").replace("?", "x").partition(".")
    return schema, table


class TableFilter:
    """The tables that match a pattern of `include` and none of `exclude`; upper and lower case differ."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        self._include = {pattern: _parts(pattern) for pattern in include}
        self._exclude = [_parts(pattern) for pattern in exclude]

    def matches(self, schema: str, table: str) -> bool:
        """Return whether a table is selected."""
        included = any(_matches(parts, schema, table) for parts in self._include.values())
        return included and not any(_matches(parts, schema, table) for parts in self._exclude)

    def may_match_in(self, schema: str) -> bool:
        """Return whether tables of a schema may be selected."""
        included = any(in_schema.fullmatch(schema) for in_schema, _ in self._include.values())
        return included and not any(in_schema.fullmatch(schema) for in_schema, table in self._exclude if _is_any(table))

    def matches_all_in(self, schema: str) -> bool:
        """Return whether all tables of a schema are selected, whatever their names."""
        all_tables = (in_schema for in_schema, table in self._include.values() if _is_any(table))
        included = any(in_schema.fullmatch(schema) for in_schema in all_tables)
        return included and not any(in_schema.fullmatch(schema) for in_schema, _ in self._exclude)

    def may_be_named_in(self, text: str) -> bool:
        """Return whether a text may contain the name of a schema with selected tables."""
        return any(in_schema.search(text) for in_schema, _ in self._include.values())

    def unmatched(self, tables: Iterable[tuple[str, str]]) -> list[str]:
        """List the patterns of `include` that match none of the tables, given as (schema, name)."""
        names = list(tables)
        return [p for p, parts in self._include.items() if not any(_matches(parts, *name) for name in names)]


_Parts = tuple[re.Pattern[str], re.Pattern[str]]


def _parts(pattern: str) -> _Parts:
    schema, _, table = pattern.partition(".")
    return name_pattern(schema), name_pattern(table)


def _is_any(table: re.Pattern[str]) -> bool:
    return table.pattern == ".*"


def _matches(parts: _Parts, schema: str, table: str) -> bool:
    return bool(parts[0].fullmatch(schema) and parts[1].fullmatch(table))
