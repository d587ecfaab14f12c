"""CREATE TABLE."""

from databus.errors import CannotApply
from databus_changes.catalog import charset_of
from databus_changes.ddl.columns import Definition, read_charset, read_collation, read_column
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.draft import Draft
from databus_changes.ddl.keys import Key, read_key
from databus_changes.ddl.words import Words

_QUERY = {"SELECT", "AS", "IGNORE", "REPLACE", "WITH", "VALUES", "TABLE", "("}


def create_table(words: Words, schema_charset: str, dialect: Dialect) -> Draft:
    """Make a table of what stands behind its name. `schema_charset` is "" where it is not known."""
    definitions: list[Definition] = []
    keys: list[Key] = []
    words.expect("(")
    while True:
        if key := read_key(words):
            keys.append(key)
        else:
            definitions.append(read_column(words))
        if not words.take(","):
            break
    words.expect(")")
    draft = Draft(dialect, _default_charset(words, schema_charset))
    draft.change([], {}, [("", definition) for definition in definitions])
    draft.add_keys_of(definitions)
    for key in keys:
        key.add_to(draft)
    return draft


def _default_charset(words: Words, schema_charset: str) -> str:
    """Read the table's options for its character set."""
    charset = collation = ""
    while words.next and not words.take("PARTITION", "BY"):
        if named := read_charset(words):
            charset = named
        elif named := read_collation(words):
            collation = named
        elif words.take("WITH", "SYSTEM", "VERSIONING"):
            raise CannotApply("a system-versioned table")
        elif words.next in _QUERY:
            raise CannotApply("a table made of a query")
        elif words.take("START", "TRANSACTION"):
            continue
        else:
            words.skip()
    if charset == "default":
        charset = schema_charset
    return charset or charset_of(collation) or schema_charset
