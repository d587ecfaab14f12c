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

    @property
    def text(self) -> str:
        """The name without quotes; with ANSI_QUOTES, text in double quotes is a name."""
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
        """Whether the token can be a string literal; with ANSI_QUOTES, text in double quotes is a name."""
        return self.raw[0] in {"'", '"'}
