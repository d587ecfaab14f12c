"""Select tables by `schema.table` patterns with `*` and `?`."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from databus.events import full_name


class TableFilter:
    """The tables that match a pattern of `include` and none of `exclude`; upper and lower case differ."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        self._include = include
        self._exclude = exclude

    def matches(self, schema: str, table: str) -> bool:
        """Return whether a table is selected."""
        name = full_name(schema, table)
        return any(fnmatchcase(name, p) for p in self._include) and not any(fnmatchcase(name, p) for p in self._exclude)

    def may_match_in(self, schema: str) -> bool:
        """Return whether tables of a schema may be selected."""
        included = any(fnmatchcase(schema, _schema_of(p)) for p in self._include)
        return included and not any(fnmatchcase(schema, _schema_of(p)) for p in self._exclude if p.endswith(".*"))

    def may_be_named_in(self, text: str) -> bool:
        """Return whether a text may contain the name of a schema with selected tables."""
        return any(fnmatchcase(text, f"*{_schema_of(p)}*") for p in self._include)

    def unmatched(self, tables: Iterable[tuple[str, str]]) -> list[str]:
        """List the patterns of `include` that match none of the tables, given as (schema, name)."""
        names = [full_name(schema, table) for schema, table in tables]
        return [p for p in self._include if not any(fnmatchcase(name, p) for name in names)]


def _schema_of(pattern: str) -> str:
    return pattern.partition(".")[0]
