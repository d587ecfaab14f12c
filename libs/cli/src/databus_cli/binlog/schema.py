"""The tables that a file of SQL defines, as `mysqldump --no-data --databases` writes it."""

import re
from collections.abc import Iterator
from pathlib import Path

from databus_binlog import Flavor
from databus_changes.ddl.apply import apply_ddl
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.statement import parse_statement
from databus_changes.ddl.token import UnreadableStatement
from databus_core.errors import CannotApply, InvalidSettings
from databus_core.kafka_history import SchemaHistory

#: triggers and routines, whose statements end differently
_ROUTINES = re.compile(r"^DELIMITER (?!;$).*?^DELIMITER ;$", re.MULTILINE | re.DOTALL)


def read_schema(path: Path, dialect: Dialect) -> SchemaHistory:
    """Return the tables and character sets after the statements of a file, which may also have other statements.

    Raises InvalidSettings if the file is not SQL, if a table's definition is not understood, or if its database is not
    given.
    """
    history, schema = SchemaHistory(), ""
    try:
        for text in _statements(_ROUTINES.sub("", path.read_text(encoding="utf-8")), dialect.flavor):
            statement = parse_statement(text, schema, flavor=dialect.flavor)
            if statement.tokens and statement.tokens[0].keyword == "USE":
                schema = "".join(token.text for token in statement.tokens[1:])
            for change in statement.changes:
                if not change.table[0]:
                    raise InvalidSettings(f"{path}: no USE precedes table {change.table[1]} (mysqldump --databases)")
            changes = apply_ddl(statement, history.tables, history.charsets, dialect)
            history.tables |= {name: table for name, table in changes.tables.items() if table}
            history.charsets |= {name: charset for name, charset in changes.charsets.items() if charset}
    except CannotApply as error:
        begin = " ".join(text.split())[:60]
        raise InvalidSettings(f"{path}: a definition is not understood: {begin} …: {error}") from error
    except (UnicodeDecodeError, UnreadableStatement) as error:
        raise InvalidSettings(f"{path}: not SQL in UTF-8, as mysqldump --no-data writes it") from error
    return history


def _statements(text: str, flavor: Flavor) -> Iterator[str]:
    # Importing sqlglot takes a sixth of a second.
    from databus_changes.ddl.tokens import tokenize

    start = 0
    for token in tokenize(text, flavor=flavor):
        if token.keyword == ";":
            yield text[start : token.start]
            start = token.start + 1
    yield text[start:]
