"""Routing rules: which changes go where, in which format, and how much of them is told (`publisher.routes`)."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictInt,
    StrictStr,
    StringConstraints,
    model_validator,
)


def _topic_template(template: str) -> str:
    try:
        template.format(name="n", schema="s", table="t")
    except (AttributeError, KeyError, IndexError, ValueError) as error:
        raise ValueError(f"only {{name}}, {{schema}} and {{table}} can be used: {error}") from error
    return template


TablePattern = Annotated[str, StringConstraints(pattern=r"^[^.]+\.[^.]+$")]
TopicTemplate = Annotated[str, StringConstraints(min_length=1), AfterValidator(_topic_template)]
PartitionBy: TypeAlias = Literal["table", "primary_key", "single"]
Value: TypeAlias = StrictStr | StrictInt
Names: TypeAlias = tuple[Annotated[str, StringConstraints(min_length=1)], ...]

#: what dumps and the lake are made of
DEFAULT_OUTPUT = "default"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def _only_one_of(self, *names: str) -> None:
        if len(self.model_fields_set & set(names)) != 1:
            raise ValueError(f"it takes one of {', '.join(name.rstrip('_') for name in names)}")


class Condition(_Part):
    """What a row has to have in a column. NULL equals nothing."""

    column: str
    equals: Value | None = None
    in_: Annotated[list[Value], Field(alias="in", min_length=1)] = []
    not_in: Annotated[list[Value], Field(min_length=1)] = []
    is_null: bool | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._only_one_of("equals", "in_", "not_in", "is_null")
        if "equals" in self.model_fields_set and self.equals is None:
            raise ValueError("equals: a row without a value is found by is_null: true")
        return self


class Columns(_Part):
    """Which columns are told of."""

    include: Names = ()
    exclude: Names = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._only_one_of("include", "exclude")
        return self


class Rule(_Part):
    """What becomes of the changes of some tables. Of the rules of one output the first that matches a table counts."""

    #: `schema.table` patterns with `*` and `?`
    match: Annotated[list[TablePattern], Field(min_length=1)]
    exclude: list[TablePattern] = []
    output: Annotated[str, StringConstraints(min_length=1)] = DEFAULT_OUTPUT
    #: do not publish them
    drop: bool = False
    format: str = "databus"
    options: dict[str, Any] = {}
    topic: TopicTemplate = "{name}.{schema}.{table}"
    partition_by: PartitionBy = "table"
    #: columns by which rows are spread, in place of `partition_by`
    key: Names = ()
    columns: Columns | None = None
    #: conditions, all of which a row has to meet
    where: tuple[Condition, ...] = ()
    #: columns, or patterns of columns, whose values become `***`
    mask: Names = ()
    #: … become an HMAC-SHA-256 with the salt
    hash: Names = ()
    #: … are cut to so many characters, or bytes where they are binary
    truncate: dict[str, Annotated[int, Field(ge=1)]] = {}
    #: column → its name in messages
    rename: dict[str, Annotated[str, StringConstraints(min_length=1)]] = {}

    _number: int = PrivateAttr(0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.drop and (more := self.model_fields_set - {"match", "exclude", "output", "drop"}):
            raise ValueError(f"drop: nothing is left to be told: remove {', '.join(sorted(more))}")
        if self.key and "partition_by" in self.model_fields_set:
            raise ValueError("key: it takes the place of partition_by: remove one of them")
        return self

    @property
    def filters(self) -> bool:
        """Whether messages tell less than there is, or something else."""
        return bool(self.columns or self.where or self.mask or self.hash or self.truncate or self.rename)

    def matches(self, schema: str, table: str) -> bool:
        """Say whether the rule is for a table."""
        name = f"{schema}.{table}"
        return any(fnmatchcase(name, p) for p in self.match) and not any(fnmatchcase(name, p) for p in self.exclude)

    def completed(self, number: int, defaults: dict[str, Any]) -> "Rule":
        """Number the rule and give it what it leaves out; options belong to their format."""
        left_out = {"format", "topic", "partition_by"} - self.model_fields_set
        if not self.model_fields_set & {"format", "options"}:
            left_out.add("options")
        rule = self.model_copy(update={name: defaults[name] for name in left_out})
        rule._number = number
        return rule

    @property
    def number(self) -> int:
        """Its place among the rules, from 1; 0 for the one that holds where none are given."""
        return self._number

    def __str__(self) -> str:
        return f"publisher.routes: rule {self._number}" if self._number else "publisher"


def first_matches(rules: Iterable[Rule], schema: str, table: str) -> Sequence[Rule]:
    """Give the rules by which the changes of a table are published: of each output the first one that matches."""
    chosen: dict[str, Rule] = {}
    for rule in rules:
        if rule.output not in chosen and rule.matches(schema, table):
            chosen[rule.output] = rule
    return [rule for rule in chosen.values() if not rule.drop]


def default_rule(rules: Iterable[Rule], schema: str, table: str) -> Rule | None:
    """Give the rule of output `default` by which a table is published; dumps and the lake go by it, too."""
    return next((rule for rule in first_matches(rules, schema, table) if rule.output == DEFAULT_OUTPUT), None)
