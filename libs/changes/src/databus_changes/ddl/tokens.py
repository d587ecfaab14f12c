"""The tokens of a statement as the server that logged it would read them."""

import re
from typing import ClassVar

from sqlglot.dialects.mysql import MySQL
from sqlglot.tokens import Token, TokenType

# Atomic groups, not possessive quantifiers: Python 3.11.2, which Debian 12 has, mistakes the latter inside of groups.
_QUOTED = r"""'(?>(?:[^'\\]|\\.|'')*)'|"(?>(?:[^"\\]|\\.|"")*)"|`[^`]*`"""
_COMMENT = r"/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*"
_EXECUTED = rf"(?P<open>/\*M?!(?:\d{{5,6}})?)(?P<text>(?>(?:{_QUOTED}|{_COMMENT}|(?!\*/).)+))(?P<close>\*/)"
_UNWRAP = re.compile(f"{_QUOTED}|{_COMMENT}|{_EXECUTED}", re.DOTALL)


class _Tokenizer(MySQL.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()  # else what follows REPLACE, RENAME or CALL is one string


def tokenize(query: str) -> list[Token]:
    """Split a statement into tokens; their `start` counts in `query`. Raises sqlglot's TokenError."""
    return _Tokenizer(dialect="mysql").tokenize(_UNWRAP.sub(_unwrapped, query))


def keyword(token: Token) -> str:
    """Give a word that is not quoted in upper case; a quoted one is none."""
    return "?" if token.token_type in {TokenType.IDENTIFIER, TokenType.STRING} else token.text.upper()


def _unwrapped(found: re.Match[str]) -> str:
    """Blank the marks of `/*! … */`, `/*!40005 … */` and `/*M! … */`: servers execute what stands between."""
    if not found["open"]:
        return found[0]
    return " " * len(found["open"]) + found["text"] + " " * len(found["close"])
