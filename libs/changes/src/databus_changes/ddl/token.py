"""A token of a SQL statement."""

import re
from typing import NamedTuple

_UNQUOTED = re.compile(r"[\w$]+")


class UnreadableStatement(ValueError):
    """The text of a statement cannot be split into tokens."""


class Token(NamedTuple):
    """A word, a name, a literal or a punctuation mark."""

    #: upper case; "?" for what is quoted, and for literals
    keyword: str
    #: as the statement has it, with quotes
    raw: str
    #: offset in the statement
    start: int

    @property
    def text(self) -> str:
        """The text without quotes; a text in double quotes may be a name, too (ANSI_QUOTES)."""
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
        """Whether the token is a string literal; one in double quotes may be a name instead."""
        return self.raw[0] in {"'", '"'}
