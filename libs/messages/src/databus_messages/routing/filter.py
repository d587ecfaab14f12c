"""What of a table's changes a rule lets through, and as what. Made once for each version of a table.

A rule that does not fit a table stops what would publish it: a filter must never let more through than it was told to.
"""

from collections.abc import Iterator, Sequence

from databus.errors import InvalidSettings
from databus.events import Action, Row, Table
from databus.settings.rules import Rule
from databus_messages.routing.conditions import Passes, conditions
from databus_messages.routing.projection import project

Run = tuple[Action, Sequence[int], Sequence[Row]]


class Filter:
    """Tests and projects the rows of one table. Raises InvalidSettings if the rule does not fit it."""

    def __init__(self, rule: Rule, table: Table, salt: bytes) -> None:
        try:
            self._passes = conditions(rule.where, table) if rule.where else None
            self._projection = project(rule, table, salt)
        except InvalidSettings as error:
            raise InvalidSettings(f"{rule} does not fit table {table.schema}.{table.name}: {error}") from error
        #: as messages tell it
        self.table = self._projection.table

    def place_of(self, name: str) -> int:
        """Find a column, by its name in the table, in what is told of a row. Raises InvalidSettings."""
        return self._projection.place_of(name)

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Give what is told of rows."""
        passes, project_row = self._passes, self._projection.row
        return [project_row(row) for row in rows if passes is None or passes(row)]

    def changes(self, action: Action, first: int, rows: Sequence[Row]) -> Iterator[Run]:
        """Give what is told of changes, of which the first has this ordinal: action, ordinals and images.

        An update into what is let through is an insert for those who see only that, one out of it a delete.
        """
        if self._passes is None:
            changes = len(rows) // (2 if action is Action.UPDATE else 1)
            yield action, range(first, first + changes), self.rows(rows)
            return
        run: tuple[Action, list[int], list[Row]] | None = None
        for ordinal, (kind, images) in enumerate(_seen(self._passes, action, rows), first):
            if not images:
                continue
            if run is None or run[0] is not kind:
                if run:
                    yield run
                run = kind, [], []
            run[1].append(ordinal)
            run[2].extend(map(self._projection.row, images))
        if run:
            yield run


def filter_of(rule: Rule, table: Table, salt: bytes) -> Filter | None:
    """Make a rule's filter of a table, if there is something to filter; a table that is gone has no columns."""
    return Filter(rule, table, salt) if rule.filters and table.columns else None


def _seen(passes: Passes, action: Action, rows: Sequence[Row]) -> Iterator[tuple[Action, Sequence[Row]]]:
    """Give what each change is to those who see only rows that pass: its action and images, or none."""
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
