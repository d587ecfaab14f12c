"""The grammar of CREATE TABLE."""

from databus_changes.ddl.charset_clause import CharsetClause
from databus_changes.ddl.columns import read_column
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.draft import TableDraft
from databus_changes.ddl.keys import read_key
from databus_changes.ddl.reader import TokenReader
from databus_core.errors import CannotApply

#: first words of a query that fills the table
_QUERY = {"SELECT", "AS", "IGNORE", "REPLACE", "WITH", "VALUES", "TABLE", "("}


def create_table(tokens: TokenReader, schema_charset: str, dialect: Dialect) -> TableDraft:
    """Read what follows the table's name into a draft. `schema_charset`: "" if it is not known. Raises CannotApply."""
    draft = TableDraft(dialect, schema_charset)
    tokens.expect("(")
    while True:
        if not read_key(tokens, draft):
            draft.add_column(read_column(tokens))
        if not tokens.take(","):
            break
    tokens.expect(")")
    draft.charset = _read_options(tokens).charset(schema_charset) or schema_charset
    return draft


def _read_options(tokens: TokenReader) -> CharsetClause:
    """Read the table's options, of which only the character set matters."""
    clause = CharsetClause()
    while tokens.next and not tokens.take("PARTITION", "BY"):
        if clause.take(tokens):
            continue
        if tokens.take("WITH", "SYSTEM", "VERSIONING"):
            raise CannotApply("it creates a system-versioned table")
        if tokens.next in _QUERY:
            raise CannotApply("it fills the table from a query")
        if tokens.take("UNION"):
            tokens.take("=")
            tokens.skip()  # tables, in parentheses
        elif not tokens.take("START", "TRANSACTION"):
            tokens.skip()
    return clause
