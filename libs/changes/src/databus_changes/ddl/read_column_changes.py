"""Reads what a statement does to the columns of a table, without the defaults of the server that executed it."""

from databus_changes.ddl.alter_table import alter_table
from databus_changes.ddl.column_changes import ColumnChanges
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.draft import TableDraft
from databus_changes.ddl.reader import TokenReader
from databus_changes.ddl.statement import Statement
from databus_core.events import Table

#: The names of columns, and whether they are added, do not depend on it.
_DIALECT = Dialect(flavor="mysql", integer_widths=True)


def read_column_changes(statement: Statement, before: Table) -> ColumnChanges:
    """Read an ALTER TABLE or RENAME TABLE on the table `before`. Raises CannotApply if the text is not understood."""
    draft = TableDraft(_DIALECT, "utf8mb4", before)
    tokens = TokenReader(statement.tokens)
    if tokens.take("ALTER"):
        while tokens.take("ONLINE") or tokens.take("OFFLINE") or tokens.take("IGNORE"):
            pass
        tokens.expect("TABLE")
        tokens.take("IF", "EXISTS")
        tokens.table_name(before.schema)
        alter_table(tokens, draft, before.schema, schema_charset="")
    return draft.column_changes()
