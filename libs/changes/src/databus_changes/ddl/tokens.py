"""The tokens of a statement, as the server that logged it would split it."""

import re
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from sqlglot import tokens as sqlglot
from sqlglot.dialects.mysql import MySQL
from sqlglot.tokens import TokenType

# Atomic groups, not possessive quantifiers: Python 3.11.2 (Debian 12) matches the latter wrongly inside groups.
_QUOTED = r"""'(?>(?:[^'\\]|\\.|'')*)'|"(?>(?:[^"\\]|\\.|"")*)"|`[^`]*`"""
_COMMENT = r"/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*"
_EXECUTED = rf"(?P<open>/\*M?!(?:\d{{5,6}})?)(?P<text>(?>(?:{_QUOTED}|{_COMMENT}|(?!\*/).)+))(?P<close>\*/)"
_UNWRAP = re.compile(f"{_QUOTED}|{_COMMENT}|{_EXECUTED}", re.DOTALL)
_LITERALS = {TokenType.STRING, TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.NATIONAL_STRING}
_UNQUOTED = re.compile(r"[\w$]+")
_WORD = re.compile(r"\S+")


class Token(NamedTuple):
    """A word, a name, a literal or a punctuation mark."""

    #: upper case; "?" for what is quoted, and for literals
    keyword: str
    kind: TokenType
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
        if self.kind == TokenType.IDENTIFIER or self.raw.startswith('"'):
            return True
        return self.keyword != "?" and _UNQUOTED.fullmatch(self.raw) is not None


class _Tokenizer(MySQL.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()  # otherwise what follows REPLACE, RENAME or CALL would be one string


def tokenize(statement: str) -> list[Token]:
    """Split a statement, without semicolons at its end. Raises sqlglot's TokenError for text that cannot be split."""
    text = _UNWRAP.sub(_unwrapped, statement)
    tokens = [token for found in _Tokenizer(dialect="mysql").tokenize(text) for token in _split(found, text)]
    while tokens and tokens[-1].keyword == ";":
        tokens.pop()
    return tokens


def _split(found: sqlglot.Token, text: str) -> Iterator[Token]:
    """Split what sqlglot joins (PRIMARY KEY, DOUBLE PRECISION)."""
    raw = text[found.start : found.end + 1]
    if found.token_type == TokenType.IDENTIFIER or found.token_type in _LITERALS:
        yield Token("?", found.token_type, raw, found.start)
    elif _UNQUOTED.match(raw):
        for word in _WORD.finditer(raw):
            yield Token(word[0].upper(), found.token_type, word[0], found.start + word.start())
    else:
        yield Token(found.text.upper(), found.token_type, raw, found.start)


def _unwrapped(found: re.Match[str]) -> str:
    """Blank the marks of `/*! … */`, `/*!40005 … */` and `/*M! … */`: servers execute what is inside."""
    if not found["open"]:
        return found[0]
    return " " * len(found["open"]) + found["text"] + " " * len(found["close"])
