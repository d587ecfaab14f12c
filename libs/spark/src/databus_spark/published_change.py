"""What a statement did to the rows of a table as they are published."""

from collections.abc import Sequence

from databus_core.errors import CannotApply
from databus_core.events import Table
from databus_core.settings.rules import Rule, default_rule
from databus_spark.alter import RowChange, row_change
from databus_spark.errors import TableParked
from databus_spark.types import TypeOptions


def published_change(before: Table, after: Table, query: str, types: TypeOptions, rules: Sequence[Rule]) -> RowChange:
    """Return how a statement changes published rows. Raises TableParked if that is not certain.

    The text of a statement is that of the source: it has neither the names nor the values that a rule gives columns,
    and it does not show which rows a condition lets pass afterwards.
    """
    rule, rule_before = (default_rule(rules, table.schema, table.name) for table in (after, before))
    is_rewritten = any(each is not None and each.rewrites for each in (rule, rule_before))
    try:
        change = row_change(before, after, query, types)
    except CannotApply as error:
        raise TableParked(f"the effect of a statement on its rows is not certain: {error}") from error
    if is_rewritten and (change.concerns_columns or rule != rule_before):
        raise TableParked("a rule of publisher.routes changes its rows, so a statement's text does not show the effect")
    return change
