"""Keys and constraints of CREATE TABLE and ALTER TABLE … ADD."""

from dataclasses import dataclass

from databus_changes.ddl.columns import skip_check, skip_reference
from databus_changes.ddl.draft import Draft
from databus_changes.ddl.words import Words

_STARTERS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}


@dataclass(frozen=True)
class Key:
    """A key, or with no columns a constraint that is none here."""

    name: str = ""
    columns: tuple[str, ...] = ()
    primary: bool = False
    if_not_exists: bool = False

    def add_to(self, draft: Draft) -> None:
        """Add it to a table."""
        if self.primary:
            draft.add_primary_key(list(self.columns))
        elif self.columns and not (self.if_not_exists and draft.has_index(self.name)):
            draft.add_index(self.name, list(self.columns))


def read_key(words: Words) -> Key | None:
    """Read a key or a constraint; None where a column's definition comes next."""
    if words.next not in _STARTERS:
        return None
    symbol = ""
    if words.take("CONSTRAINT"):
        words.take("IF", "NOT", "EXISTS")
        if words.next not in _STARTERS:
            symbol = words.name()
    if words.next == "CHECK":
        skip_check(words)
        return Key()
    if words.take("FOREIGN", "KEY"):
        words.take("IF", "NOT", "EXISTS")
        if words.next != "(":
            words.name()
        words.names()
        words.expect("REFERENCES")
        skip_reference(words)
        return Key()
    if words.take("PRIMARY", "KEY"):
        return _key(words, symbol="", primary=True)
    _ = words.take("UNIQUE") or words.take("FULLTEXT") or words.take("SPATIAL")
    _ = words.take("INDEX") or words.take("KEY")
    return _key(words, symbol=symbol, primary=False)


def _key(words: Words, *, symbol: str, primary: bool) -> Key:
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    name = symbol
    if words.next not in {"(", "USING", "TYPE"}:
        name = words.name()
    if words.take("USING") or words.take("TYPE"):
        words.skip()
    columns = tuple(words.names())
    words.skip_item()  # options of an index change no column
    return Key(name, columns, primary, if_not_exists)
