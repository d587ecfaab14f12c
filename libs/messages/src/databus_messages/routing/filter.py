"""Filters a table's changes by a rule, which selects rows, and selects or rewrites columns.

A filter is made for one version of a table. With a rule that does not fit the table nothing of it is
published, because a filter must never publish more than configured.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from databus_core.errors import InvalidSettings, PoisonError, RuleMismatch
from databus_core.events import Action, Row, Table
from databus_core.settings import Publisher
from databus_core.settings.rules import Rule, first_matches
from databus_messages.routing.conditions import RowTest, conditions
from databus_messages.routing.partitions import images_per_row
from databus_messages.routing.projection import project


class Run(NamedTuple):
    """Consecutive changes with the same action."""

    action: Action
    ordinals: Sequence[int]
    #: their row images
    rows: Sequence[Row]
    #: why it is not known whether the changes meet the conditions; empty if it is known
    refusal: str = ""


class Filter:
    """Selects and projects the rows of one table. Raises RuleMismatch if the rule does not fit the table."""

    def __init__(self, rule: Rule, table: Table, salt: bytes) -> None:
        try:
            self._passes = conditions(rule.where, table) if rule.where else None
            self._projection = project(rule, table, salt)
        except InvalidSettings as error:
            raise RuleMismatch(f"{rule} does not fit table {table.full_name}: {error}") from error
        #: the table as it is published
        self.table = self._projection.table

    def column_index(self, name: str) -> int:
        """Return the index of a column in published rows; `name` is its name in the source. Raises InvalidSettings."""
        return self._projection.column_index(name)

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that meet the conditions, projected."""
        passes, project_row = self._passes, self._projection.row
        return [project_row(row) for row in rows if passes is None or passes(row)]

    def changes(self, action: Action, first: int, rows: Sequence[Row]) -> Iterator[Run]:
        """Yield runs of changes that meet the conditions, projected; the first change in `rows` has ordinal `first`.

        An update is published as an insert if only its after image meets the conditions, and as a delete if only its
        before image does, because consumers must see exactly the rows that meet the conditions.
        """
        if self._passes is None:
            changes = len(rows) // (2 if action is Action.UPDATE else 1)
            yield Run(action, range(first, first + changes), self.rows(rows))
            return
        run: tuple[Action, list[int], list[Row]] | None = None
        for ordinal, (kind, images) in enumerate(_filtered(self._passes, action, rows), first):
            if not images:
                continue
            if run is None or run[0] is not kind:
                if run:
                    yield Run(*run)
                run = kind, [], []
            run[1].append(ordinal)
            run[2].extend(map(self._projection.row, images))
        if run:
            yield Run(*run)

    def partial_changes(self, action: Action, first: int, rows: Sequence[Row]) -> Iterator[Run]:
        """Yield runs as `changes` does, for rows that lack values; refuse those for which a condition needs them."""
        single = self._single_changes(action, first, rows)
        for (kind, refusal), group in groupby(single, lambda run: (run.action, run.refusal)):
            runs = list(group)
            ordinals = [ordinal for run in runs for ordinal in run.ordinals]
            yield Run(kind, ordinals, [row for run in runs for row in run.rows], refusal)

    def _single_changes(self, action: Action, first: int, rows: Sequence[Row]) -> Iterator[Run]:
        step = images_per_row(action)
        for ordinal, index in enumerate(range(0, len(rows), step), first):
            images = rows[index : index + step]
            try:
                runs = list(self.changes(action, ordinal, images))
            except PoisonError as error:
                runs = [Run(action, [ordinal], list(map(self._projection.row, images)), str(error))]
            yield from runs


def filter_of(rule: Rule, table: Table, salt: bytes) -> Filter | None:
    """Return the rule's filter for a table; None if the table is published unchanged or was dropped."""
    return Filter(rule, table, salt) if rule.filters and table.columns else None


def require_fit(publisher: Publisher, tables: Iterable[Table]) -> None:
    """Raise InvalidSettings, with a line for each rule that applies to one of these tables and does not fit it."""
    rules, salt = publisher.rules, publisher.salt.get_secret_value().encode()
    faults: list[str] = []
    for table in tables:
        for rule in first_matches(rules, table.schema, table.name):
            try:
                filter_of(rule, table, salt)
            except InvalidSettings as error:
                faults.append(str(error))
    if faults:
        raise InvalidSettings("\n".join(faults))


def _filtered(passes: RowTest, action: Action, rows: Sequence[Row]) -> Iterator[tuple[Action, Sequence[Row]]]:
    """Yield for each change the action to publish, and the images, if any, that meet the conditions."""
    if action is not Action.UPDATE:
        for row in rows:
            yield action, [row] if passes(row) else ()
        return
    for before, after in zip(rows[::2], rows[1::2], strict=True):
        match passes(before), passes(after):
            case True, True:
                yield Action.UPDATE, (before, after)
            case True, False:
                yield Action.DELETE, (before,)
            case False, True:
                yield Action.INSERT, (after,)
            case _:
                yield Action.UPDATE, ()
