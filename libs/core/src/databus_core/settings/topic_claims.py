"""Which table a topic belongs to: names of tables can differ although their topics are the same for Kafka.

Kafka refuses a topic whose name differs from an existing one only in `.` and `_`; and a template such as
`{schema}_{table}` can give one topic to two tables. The first table keeps the topic. The other has none until the
settings give it another one.

Tables share a topic on purpose if the template does not use what they differ in, as in `{name}.all`, or if they get it
from different templates.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from databus_core import names
from databus_core.errors import InvalidSettings
from databus_core.events import full_name
from databus_core.settings.rules import Rule, first_matches
from databus_core.settings.topics import separates_names
from databus_core.table_filter import sample

if TYPE_CHECKING:
    from databus_core.settings.root import Settings

#: how many characters Kafka allows in a topic's name
_LONGEST = 249
_ADVICE = "set publisher.escape_names, or escape_names or another topic in a rule of publisher.routes"


@dataclass(frozen=True, slots=True)
class Destination:
    """The topic to which a rule publishes a table."""

    rule: Rule
    topic: str
    #: the table's full name
    table: str
    #: those of schema and table that the rule's template uses
    fields: tuple[str, ...]
    #: why the table cannot have the topic; empty if it can
    fault: str = ""

    @property
    def refusal(self) -> str:
        """Why the table cannot have the topic, and what to do; empty if it can."""
        return f"table {self.table} has no topic: {self.fault}: {_ADVICE}" if self.fault else ""


class TopicClaims:
    """Gives each topic to the first table that claims it.

    folded: whether to compare topics as Kafka does. Otherwise Kafka decides which of two topics is the first.
    """

    def __init__(self, rules: Sequence[Rule], pipeline: str, *, folded: bool = False) -> None:
        self._rules = rules
        self._pipeline = pipeline
        self._folded = folded
        #: topic, perhaps folded → the first destination
        self._owners: dict[str, Destination] = {}
        #: (table, number of the rule) → destination that cannot be used
        self.refused: dict[tuple[str, int], Destination] = {}
        #: topics of DDL on databases
        self._of_databases: set[str] = set()
        #: topic → why Kafka refuses to create it
        self._refused: dict[str, str] = {}

    def claim(self, schema: str, table: str) -> list[Destination]:
        """Claim the topics of a table, one for each output that publishes it."""
        return [self._claim(rule, schema, table) for rule in first_matches(self._rules, schema, table)]

    def claim_for_database(self, topic: str) -> str:
        """Claim a topic of DDL on a database. Return why it cannot be used, and what to do; "" if it can."""
        self._of_databases.add(topic)
        fault = self._fault_of_name(topic) or self._collision(topic, self._owners.get(self._compared(topic)))
        return f"DDL on a database has no topic: {fault}: {_ADVICE}" if fault else ""

    def refuse(self, topic: str, reason: str) -> None:
        """Record that Kafka refuses to create a topic."""
        self._refused[topic] = reason

    def is_usable(self, topic: str) -> bool:
        """Return whether some table or database has the topic."""
        return topic in self._owners.keys() | self._of_databases and not self._fault_of_name(topic)

    def _claim(self, rule: Rule, schema: str, table: str) -> Destination:
        fields = tuple(value for field, value in (("{schema}", schema), ("{table}", table)) if field in rule.topic)
        found = Destination(rule, rule.topic_of(self._pipeline, schema, table), full_name(schema, table), fields)
        if fault := self._fault(found):
            found = replace(found, fault=fault)
            self.refused[found.table, rule.number] = found
        return found

    def _fault_of_name(self, topic: str) -> str:
        if topic in self._refused:
            return self._refused[topic]
        if topic in (".", "..") or len(topic) > _LONGEST:
            return f"{topic} is no name for a topic of Kafka (at most {_LONGEST} characters)"
        if names.is_reserved(topic):
            return f"topics like {topic} are for the progress, schemas and dead letters of pipelines"
        return ""

    def _compared(self, topic: str) -> str:
        return names.folded(topic) if self._folded else topic

    def _collision(self, topic: str, owner: Destination | None) -> str:
        if owner is None or owner.topic == topic:
            return ""
        return f"for Kafka, {topic} is the same as {owner.topic}, the topic of {owner.table}"

    def _fault(self, mine: Destination) -> str:
        topic = mine.topic
        if fault := self._fault_of_name(topic):
            return fault
        owner = self._owners.setdefault(self._compared(topic), mine)
        if fault := self._collision(topic, owner):
            return fault
        if not _may_share(mine, owner):
            by = f" by {owner.rule}, for output {owner.rule.output}" if owner.rule.output != mine.rule.output else ""
            return f"{topic} is the topic of {owner.table}{by}"
        return ""


def _may_share(one: Destination, other: Destination) -> bool:
    """Return whether two destinations have the same topic on purpose."""
    if one.rule.format != other.rule.format:
        return False
    if one.table == other.table:
        return one.rule.output == other.rule.output
    return one.rule.topic != other.rule.topic or one.fields == other.fields


def known_claims(settings: "Settings", tables: Iterable[tuple[str, str]], *, folded: bool = False) -> TopicClaims:
    """Claim the topics of those tables, given as (schema, name), that are captured, in this order."""
    claims = TopicClaims(settings.publisher.rules, settings.name, folded=folded)
    for table in tables:
        if settings.source.captures(*table):
            claims.claim(*table)
    return claims


def require_topics(settings: "Settings", tables: Iterable[tuple[str, str]]) -> None:
    """Raise InvalidSettings, with a line for each of these tables that has no topic."""
    if refused := known_claims(settings, tables, folded=True).refused:
        raise InvalidSettings("\n".join(found.refusal for found in refused.values()))


def topic_faults(settings: "Settings") -> Iterator[str]:
    """Yield what is wrong with the topics of any table that the settings may capture: no table has to exist.

    For each pattern, one name that matches it is tried. What follows from the names of several tables is not found.
    """
    rules = settings.publisher.rules
    tables = {sample(pattern) for pattern in chain(settings.source.include, *(rule.match for rule in rules))}
    for table in sorted(tables):
        for found in known_claims(settings, [table], folded=True).refused.values():
            yield f"{_path(found.rule)}: {found.fault}"
    for rule in rules:
        if rule.escape_names and not separates_names(rule.topic):
            yield f"{_path(rule)}: with escape_names, {{schema}} and {{table}} need `.` or `_` between them"


def _path(rule: Rule) -> str:
    return f"{rule}{': ' if rule.number else '.'}topic"
