"""Splits a statement into tokens, as the server does for sessions without NO_BACKSLASH_ESCAPES."""

import re
from collections.abc import Iterator
from typing import ClassVar

from sqlglot import tokens as sqlglot
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType

from databus_changes.ddl.token import Token, UnreadableStatement

# Atomic groups, not possessive quantifiers: Python 3.11.2 (Debian 12) matches the latter wrongly inside groups.
_QUOTED = r"""'(?>(?:[^'\\]|\\.|'')*)'|"(?>(?:[^"\\]|\\.|"")*)"|`[^`]*`"""
_COMMENT = r"/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*"
_EXECUTED = rf"(?P<open>/\*M?!(?:\d{{5,6}})?)(?P<text>(?>(?:{_QUOTED}|{_COMMENT}|(?!\*/).)+))(?P<close>\*/)"
_UNWRAP = re.compile(f"{_QUOTED}|{_COMMENT}|{_EXECUTED}", re.DOTALL)
_LITERALS = {TokenType.STRING, TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.NATIONAL_STRING}
_WORD_START = re.compile(r"[\w$]")
_WORD = re.compile(r"\S+")


class _Tokenizer(MySQL.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()  # otherwise all text after REPLACE, RENAME or CALL would be one token


def tokenize(statement: str) -> list[Token]:
    """Split a statement, and drop semicolons at its end. Raises UnreadableStatement."""
    text = _UNWRAP.sub(_unwrapped, statement)
    try:
        found = _Tokenizer(dialect="mysql").tokenize(text)
    except TokenError as error:
        raise UnreadableStatement from error
    tokens = [token for joined in found for token in _split(joined, text)]
    while tokens and tokens[-1].keyword == ";":
        tokens.pop()
    return tokens


def _split(joined: sqlglot.Token, text: str) -> Iterator[Token]:
    """Yield a token of sqlglot, split into words if sqlglot joined several (PRIMARY KEY, DOUBLE PRECISION)."""
    raw = text[joined.start : joined.end + 1]
    if raw[0] == "`" or joined.token_type in _LITERALS:
        yield Token("?", raw, joined.start)
    elif _WORD_START.match(raw):
        for word in _WORD.finditer(raw):
            yield Token(word[0].upper(), word[0], joined.start + word.start())
    else:
        yield Token(joined.text.upper(), raw, joined.start)


def _unwrapped(found: re.Match[str]) -> str:
    """Replace the marks of `/*! … */`, `/*!40005 … */` and MariaDB's `/*M! … */` by spaces.

    A server executes the text between these marks.
    """
    if not found["open"]:
        return found[0]
    return " " * len(found["open"]) + found["text"] + " " * len(found["close"])
