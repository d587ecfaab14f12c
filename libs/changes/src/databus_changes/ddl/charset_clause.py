"""The grammar of `[DEFAULT] CHARACTER SET [=] x` and `COLLATE [=] x`, for columns, tables and schemas."""

from databus_changes.charsets import charset_name, charset_of
from databus_changes.ddl.reader import TokenReader
from databus_core.errors import CannotApply


class CharsetClause:
    """The clauses that give a table or a schema its default character set."""

    def __init__(self) -> None:
        self._charset = self._collation = ""

    def take(self, tokens: TokenReader) -> bool:
        """Read CHARACTER SET or COLLATE if one of them comes next; return whether it did."""
        tokens.take("DEFAULT")
        if charset := read_charset(tokens):
            self._charset = charset
        elif collation := read_collation(tokens):
            self._collation = collation
        else:
            return False
        return True

    @property
    def is_default(self) -> bool:
        """Whether the clause is CHARACTER SET DEFAULT."""
        return self._charset == "default"

    def charset(self, default: str) -> str:
        """Return the character set: `default` for CHARACTER SET DEFAULT, "" if no clause names one."""
        return (default if self.is_default else self._charset) or charset_of(self._collation)


def read_charset(tokens: TokenReader) -> str | None:
    """Read `CHARACTER SET [=] x` if it comes next; the name may be `default`."""
    if not (tokens.take("CHARACTER", "SET") or tokens.take("CHARSET") or tokens.take("CHAR", "SET")):
        return None
    tokens.take("=")
    return charset_name(_name_or_string(tokens))


def read_collation(tokens: TokenReader) -> str | None:
    """Read `COLLATE [=] x` if it comes next."""
    if not tokens.take("COLLATE"):
        return None
    tokens.take("=")
    return _name_or_string(tokens).lower()


def _name_or_string(tokens: TokenReader) -> str:
    try:
        return tokens.name()
    except CannotApply:
        return tokens.string()
