"""`databus sql`: print the changes that a program with the client gets as SQL."""

import argparse
from collections.abc import Iterator

from databus import Change
from databus_cli.binlog.sql_rows import SESSION, RowStatements
from databus_cli.tail import follow
from databus_cli.tail.images import image_of, typed
from databus_core.events import Action, Table


def run(options: argparse.Namespace) -> int:
    """Print changes as SQL."""
    return follow(options, _Sql().of)


class _Sql:
    """Writes transactions. Rows of a dump are transactions, too."""

    def __init__(self) -> None:
        self._begun = False
        self._statements: dict[str, RowStatements] = {}

    def of(self, changes: list[Change]) -> Iterator[str]:
        """Return the statements of changes of one transaction."""
        if not self._begun:
            self._begun = True
            yield SESSION.rstrip()
        rows = [change for change in changes if change.query is None]
        if rows:
            yield "START TRANSACTION;"
        for change in changes:
            if change.query is not None:
                yield f"USE `{change.definition.schema.replace('`', '``')}`;"
                yield f"{change.query.rstrip().rstrip(';')};"
            elif statement := self._row(change):
                yield statement
        if rows:
            yield "COMMIT;"

    def _row(self, change: Change) -> str | None:
        table = typed(change.definition)
        statements = self._of_table(table)
        before = image_of(table, change.before_text) if change.before_text else None
        after = image_of(table, change.after_text) if change.after_text else None
        if change.action is Action.UPDATE and before and after:
            return statements.update(before, after)
        return statements.insert(after) if after else statements.delete(before or [])

    def _of_table(self, table: Table) -> RowStatements:
        known = self._statements.get(table.fingerprint)
        if known is None:
            known = self._statements[table.fingerprint] = RowStatements(table)
        return known
