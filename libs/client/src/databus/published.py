"""How the rules of a pipeline publish tables: the topic, the options of the format, and whether it has positions."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from databus.formats.others import FORMATS
from databus_core.errors import InvalidSettings
from databus_core.settings import Settings
from databus_core.settings.rules import Rule, default_rule
from databus_core.table_filter import TableFilter, sample


class Published:
    """What output `default` publishes of tables."""

    def __init__(self, settings: Settings) -> None:
        self._name, self._rules = settings.name, settings.publisher.rules
        #: remembers the tables of records
        self.options_of = lru_cache(10_000)(self._options_of)

    def require_positions(self, tables: Sequence[str]) -> None:
        """Raise InvalidSettings if a table that matches these patterns is published without positions."""
        for rule in self._rules_of(tables):
            if rule.format in FORMATS and not _has_positions(rule):
                option = " (set its option output_binlog_position)" if rule.format == "maxwell-json" else ""
                raise InvalidSettings(
                    f"{rule}: records of format {rule.format} have no positions{option}, so it is not known which of "
                    f"them a snapshot or a position already has: read {', '.join(rule.match)} with start='latest', or "
                    "publish in format databus"
                )

    def _rules_of(self, tables: Sequence[str]) -> Iterator[Rule]:
        """Yield the rules of tables that match: for each pattern, of one table that matches it."""
        wanted = TableFilter(tables)
        patterns = [*tables, *(pattern for rule in self._rules for pattern in rule.match)]
        for table in map(sample, patterns):
            if wanted.matches(*table) and (rule := default_rule(self._rules, *table)):
                yield rule

    def topic_of(self, schema: str, table: str) -> str:
        """Return the topic of a table; empty if no rule publishes it."""
        rule = default_rule(self._rules, schema, table)
        return rule.topic_of(self._name, schema, table) if rule else ""

    def _options_of(self, schema: str, table: str) -> Mapping[str, Any]:
        """Return the options of the format of a table."""
        rule = default_rule(self._rules, schema, table)
        return rule.options if rule else {}


def _has_positions(rule: Rule) -> bool:
    match rule.format:
        case "maxwell-json":
            return bool(rule.options.get("output_binlog_position"))
        case "canal-json":
            return False
    return True
