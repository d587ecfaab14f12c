"""Routing rules (`publisher.routes`): which changes are published, where, in which format, and what of each row."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, PrivateAttr, StrictInt, StrictStr, StringConstraints, model_validator

from databus_core.names import database_topic, table_topic
from databus_core.settings.topics import TopicTemplate
from databus_core.settings.values import Section, TablePattern
from databus_core.table_filter import TableFilter

PartitionBy: TypeAlias = Literal["table", "primary_key", "single"]
Value: TypeAlias = StrictStr | StrictInt
Names: TypeAlias = tuple[Annotated[str, StringConstraints(min_length=1), Field(title="name")], ...]

#: the output whose rules apply to dumps and to the lake, too
DEFAULT_OUTPUT = "default"


class _OneOf(Section):
    """A mapping that has exactly one of some keys."""

    def _require_one_of(self, *names: str) -> None:
        if len(self.model_fields_set & set(names)) != 1:
            raise ValueError(f"set exactly one of {', '.join(name.rstrip('_') for name in names)}")


class Condition(_OneOf):
    """A condition on one column of a row. NULL equals nothing."""

    column: str
    """Column that is compared."""
    equals: Value | None = None
    """The value is this one."""
    in_: Annotated[list[Value], Field(alias="in", min_length=1)] = []
    """The value is one of these."""
    not_in: Annotated[list[Value], Field(min_length=1)] = []
    """The value is NULL, or none of these."""
    is_null: bool | None = None
    """True: the value is NULL; false: the value is not NULL."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._require_one_of("equals", "in_", "not_in", "is_null")
        if "equals" in self.model_fields_set and self.equals is None:
            raise ValueError("equals: to find rows without a value, use is_null: true")
        return self


class Columns(_OneOf):
    """Which columns are published."""

    include: Names = ()
    """Columns to publish; no others are published."""
    exclude: Names = ()
    """Columns not to publish."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._require_one_of("include", "exclude")
        return self


class Rule(Section):
    """What is published of some tables, and where. Of the rules of one output the first that matches applies."""

    match: Annotated[list[TablePattern], Field(min_length=1)]
    """Tables the rule applies to, as `schema.table` patterns with `*` and `?`."""
    exclude: list[TablePattern] = []
    """Tables the rule does not apply to although `match` matches them."""
    output: Annotated[str, StringConstraints(min_length=1)] = DEFAULT_OUTPUT
    """Name of the output that the rule belongs to."""
    drop: bool = False
    """If true, the output does not publish these tables."""
    format: str = "databus"
    """Message format; by default `publisher.format`."""
    options: dict[str, Any] = {}
    """Options of the format; by default `publisher.options`, unless the rule sets `format`."""
    topic: TopicTemplate = "{name}.{schema}.{table}"
    """Template of topic names, by default `publisher.topic`; two outputs must not write a table to the same topic."""
    escape_names: bool = False
    """Whether schema and table are escaped in names of topics; by default `publisher.escape_names`."""
    partition_by: PartitionBy = "table"
    """What decides about a change's partition; by default `publisher.partition_by`."""
    key: Names = ()
    """Columns whose published values decide about a row's partition; used instead of `partition_by`."""
    columns: Columns | None = None
    """Columns to publish: `{include: [COLUMN, …]}` or `{exclude: [COLUMN, …]}`; by default all."""
    where: tuple[Condition, ...] = ()
    """Conditions that a row must meet, all of them; by default every row is published."""
    mask: Names = ()
    """Columns whose values become `***`."""
    hash: Names = ()
    """Columns whose values become 64 hexadecimal digits: HMAC-SHA-256 with `publisher.salt`; equal ones stay equal."""
    truncate: dict[str, Annotated[int, Field(ge=1)]] = {}
    """Columns whose values are cut: column to length, in characters, or in bytes for binary strings."""
    rename: dict[str, Annotated[str, StringConstraints(min_length=1)]] = {}
    """Columns with another name in messages: column to name; elsewhere in the rule the table's own names are used."""

    _number: int = PrivateAttr(0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.drop and (more := self.model_fields_set - {"match", "exclude", "output", "drop"}):
            raise ValueError(f"drop: the rule publishes nothing: remove {', '.join(sorted(more))}")
        if twice := [
            name for name in self.rename.values() if [*map(str.lower, self.rename.values())].count(name.lower()) > 1
        ]:
            raise ValueError(f"rename: several columns would have the name {twice[0]}")
        if self.key and "partition_by" in self.model_fields_set:
            raise ValueError("key replaces partition_by: remove one of them")
        return self

    @property
    def filters(self) -> bool:
        """Whether messages leave out or change something of a row."""
        return bool(self.columns) or self.rewrites

    @property
    def rewrites(self) -> bool:
        """Whether columns have other names or values than in the table, or values decide which rows are published."""
        return bool(self.where or self.mask or self.hash or self.truncate or self.rename)

    @cached_property
    def _tables(self) -> TableFilter:
        return TableFilter(self.match, self.exclude)

    def matches(self, schema: str, table: str) -> bool:
        """Return whether the rule applies to a table."""
        return self._tables.matches(schema, table)

    def topic_of(self, pipeline: str, schema: str, table: str) -> str:
        """Return the topic of a table's changes."""
        return table_topic(self.topic, pipeline, schema, table, escape=self.escape_names)

    def database_topic_of(self, pipeline: str, schema: str) -> str:
        """Return the topic of DDL on a database."""
        return database_topic(self.topic, pipeline, schema, escape=self.escape_names)

    def may_match_in(self, schema: str) -> bool:
        """Return whether the rule may apply to tables of a schema."""
        return self._tables.may_match_in(schema)

    def matches_all_in(self, schema: str) -> bool:
        """Return whether the rule applies to all tables of a schema that no earlier rule applies to."""
        return self._tables.matches_all_in(schema)

    def completed(self, number: int, defaults: dict[str, Any]) -> "Rule":
        """Return the rule with its number and with the defaults. A rule that sets `format` gets no default options."""
        left_out = {"format", "topic", "escape_names", "partition_by"} - self.model_fields_set
        if not self.model_fields_set & {"format", "options"}:
            left_out.add("options")
        rule = self.model_copy(update={name: defaults[name] for name in left_out})
        rule._number = number
        return rule

    @property
    def number(self) -> int:
        """The rule's number in `publisher.routes`, from 1; 0 for the rule that applies if there are no routes."""
        return self._number

    def __str__(self) -> str:
        return f"publisher.routes: rule {self._number}" if self._number else "publisher"


def first_matches(rules: Iterable[Rule], schema: str, table: str) -> Sequence[Rule]:
    """List the rules that publish a table: of each output the first that matches, unless it drops the table."""
    chosen: dict[str, Rule] = {}
    for rule in rules:
        if rule.output not in chosen and rule.matches(schema, table):
            chosen[rule.output] = rule
    return [rule for rule in chosen.values() if not rule.drop]


def database_rules(rules: Iterable[Rule], schema: str) -> Sequence[Rule]:
    """List the rules that may publish tables of a database, which is a schema."""
    found: list[Rule] = []
    complete: set[str] = set()
    for rule in rules:
        if rule.output in complete or not rule.may_match_in(schema):
            continue
        if rule.matches_all_in(schema):  # no later rule of this output applies to a table of the database
            complete.add(rule.output)
        if not rule.drop:
            found.append(rule)
    return found


def default_rule(rules: Iterable[Rule], schema: str, table: str) -> Rule | None:
    """Find the rule by which output `default` publishes a table. Dumps and the lake follow the rule, too."""
    return next((rule for rule in first_matches(rules, schema, table) if rule.output == DEFAULT_OUTPUT), None)
