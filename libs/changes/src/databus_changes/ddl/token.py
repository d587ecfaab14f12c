"""A token of a SQL statement."""

import re
from typing import NamedTuple

_UNQUOTED = re.compile(r"[\w$]+")


class UnreadableStatement(ValueError):
    """The text of a statement cannot be split into tokens."""


class Token(NamedTuple):
    """A word, a name, a literal or a punctuation mark."""

    #: in upper case; "?" for quoted names, and for literals other than numbers
    keyword: str
    #: as in the statement, with quotes
    raw: str
    #: offset in the statement
    start: int
    #: whether a backslash in a literal is an escape character
    backslash: bool = True

    @property
    def text(self) -> str:
        """A name without its quotes; any other token as it is. Text in double quotes may be a name (ANSI_QUOTES)."""
        quote = self.raw[0]
        return self.raw[1:-1].replace(quote * 2, quote) if quote in {"`", '"'} else self.raw

    @property
    def is_name(self) -> bool:
        """Whether the token can be an identifier."""
        if self.raw[0] in {"`", '"'}:
            return True
        return self.keyword != "?" and _UNQUOTED.fullmatch(self.raw) is not None

    @property
    def is_string(self) -> bool:
        """Whether the token can be a string literal. Text in double quotes can, but may also be a name."""
        return self.raw[0] in {"'", '"'}
