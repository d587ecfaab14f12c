"""What a dump tells of a table: as much as the rule tells by which output `default` publishes it, in the same texts.

What a rule hides must not come out by a dump; so a table that this output does not publish is in no dump.
"""

from collections.abc import Sequence

from databus import names
from databus.events import Row, Table
from databus.settings import Settings
from databus.settings.rules import Rule, default_rule
from databus_messages.routing.filter import filter_of


def rule_of(settings: Settings, table: Table) -> Rule | None:
    """Find the rule that publishes a captured table; None: it is not published."""
    if not settings.source.captures(table.schema, table.name):
        return None
    return default_rule(settings.publisher.rules, table.schema, table.name)


def topic_of(settings: Settings, table: Table) -> set[str]:
    """Name the topic that changes of a table go to, if it is published."""
    rule = rule_of(settings, table)
    return {names.table_topic(rule.topic, settings.name, table)} if rule else set()


class Content:
    """What is told of one version of a table."""

    def __init__(self, settings: Settings, rule: Rule, table: Table) -> None:
        """Apply the rule. Raises InvalidSettings if it does not fit the table."""
        self._filter = filter_of(rule, table, settings.publisher.salt.get_secret_value().encode())
        #: as the dump tells it
        self.table = self._filter.table if self._filter else table
        #: the texts are those of the `databus` format with `compat: strict`
        self.strict = rule.format == "databus" and rule.options.get("compat") == "strict"

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Give what is told of rows."""
        return self._filter.rows(rows) if self._filter else rows
