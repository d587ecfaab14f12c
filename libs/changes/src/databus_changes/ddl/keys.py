"""The grammar of keys and constraints in CREATE TABLE and ALTER TABLE … ADD."""

from databus_changes.ddl.draft import TableDraft
from databus_changes.ddl.reader import TokenReader

#: first words of a key or a constraint
_STARTERS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}


def read_key(tokens: TokenReader, draft: TableDraft) -> bool:
    """Read a key into `draft`, or skip a constraint; return False if neither comes next."""
    if tokens.take("VECTOR", "INDEX") or tokens.take("VECTOR", "KEY"):  # VECTOR may also be a column's name
        _read_index(tokens, draft, "")
        return True
    if tokens.next not in _STARTERS:
        return False
    symbol = ""
    if tokens.take("CONSTRAINT"):
        tokens.take("IF", "NOT", "EXISTS")
        if tokens.next not in _STARTERS:
            symbol = tokens.name()
    if tokens.next == "CHECK":
        skip_check(tokens)
    elif tokens.take("FOREIGN", "KEY"):
        _skip_foreign_key(tokens)
    elif tokens.take("PRIMARY", "KEY"):
        _read_index(tokens, draft, "", primary=True)
    else:
        unique = tokens.take("UNIQUE")
        _ = tokens.take("FULLTEXT") or tokens.take("SPATIAL")
        _ = tokens.take("INDEX") or tokens.take("KEY")
        _read_index(tokens, draft, symbol, unique=unique)
    return True


def _read_index(
    tokens: TokenReader, draft: TableDraft, symbol: str, *, primary: bool = False, unique: bool = False
) -> None:
    """Read the name and columns of an index. An index without a name gets `symbol`, the name of its constraint."""
    if_not_exists = tokens.take("IF", "NOT", "EXISTS")
    name = symbol
    if tokens.next not in {"(", "USING", "TYPE"}:
        name = tokens.name()
    if tokens.take("USING") or tokens.take("TYPE"):
        tokens.skip()
    columns, has_prefix = tokens.key_columns()
    draft.add_key(name, columns, primary=primary, unique=unique and not has_prefix, if_not_exists=if_not_exists)
    tokens.skip_item()  # options of an index change no column


def _skip_foreign_key(tokens: TokenReader) -> None:
    tokens.take("IF", "NOT", "EXISTS")
    if tokens.next != "(":
        tokens.name()
    tokens.key_columns()
    tokens.expect("REFERENCES")
    skip_reference(tokens)


def skip_reference(tokens: TokenReader) -> None:
    """Skip what follows REFERENCES."""
    tokens.table_name("")
    if tokens.next == "(":
        tokens.skip()
    while tokens.next in {"MATCH", "ON"}:
        if tokens.take("MATCH"):
            tokens.skip()
            continue
        tokens.skip()
        if not (tokens.take("DELETE") or tokens.take("UPDATE")):
            raise tokens.unexpected()
        if not (tokens.take("SET", "NULL") or tokens.take("SET", "DEFAULT") or tokens.take("NO", "ACTION")):
            tokens.skip()  # RESTRICT, CASCADE


def skip_check(tokens: TokenReader) -> None:
    """Skip `[CONSTRAINT [name]] CHECK (…) [[NOT] ENFORCED]`."""
    if tokens.take("CONSTRAINT") and tokens.next != "CHECK":
        tokens.name()
    tokens.expect("CHECK")
    if tokens.next != "(":
        raise tokens.unexpected()
    tokens.skip()
    tokens.take("NOT", "ENFORCED") or tokens.take("ENFORCED")
