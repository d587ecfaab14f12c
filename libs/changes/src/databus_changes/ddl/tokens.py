"""Splits a statement into tokens, as the server does with the session's sql_mode."""

import re
from collections.abc import Iterator
from typing import ClassVar

from sqlglot import tokens as sqlglot
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType

from databus_binlog.gtid import Flavor
from databus_changes.ddl.token import Token, UnreadableStatement

_NO_BACKSLASH_ESCAPES = 1 << 20  # of sql_mode
#: a comment that no server executes; MariaDB's dumps begin with one for the release 99.99.99, which is for the client
_COMMENT = r"/\*(?!M?!(?!999999)).*?\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*"


def _executed_comments(string: str) -> re.Pattern[str]:
    """Return the pattern of quoted text and comments; `string` is that of one character in a string, for {0} quotes."""
    # Atomic groups, not possessive quantifiers: Python 3.11.2 (Debian 12) matches the latter wrongly inside groups.
    quoted = "|".join(f"{quote}(?>(?:{string.format(quote)}|{quote}{quote})*){quote}" for quote in "'\"") + "|`[^`]*`"
    executed = rf"(?P<open>/\*M?!(?:\d{{5,6}})?)(?P<text>(?>(?:{quoted}|{_COMMENT}|(?!\*/).)+))(?P<close>\*/)"
    return re.compile(f"{quoted}|{_COMMENT}|{executed}", re.DOTALL)


_LITERALS = {TokenType.STRING, TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.NATIONAL_STRING}
_WORD_START = re.compile(r"[\w$]")
_WORD = re.compile(r"\S+")


class _Tokenizer(MySQL.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()  # otherwise all text after REPLACE, RENAME or CALL would be one token


class _TokenizerWithoutBackslash(_Tokenizer):
    STRING_ESCAPES: ClassVar[list[str]] = ["'", '"']


#: whether a backslash is an escape character → executed comments, how to split a statement
_EXECUTED = {True: _executed_comments(r"[^{0}\\]|\\."), False: _executed_comments("[^{0}]")}
_TOKENIZERS = {True: _Tokenizer, False: _TokenizerWithoutBackslash}


def tokenize(statement: str, sql_mode: int = 0, flavor: Flavor = "mysql") -> list[Token]:
    """Split a statement, and drop semicolons at its end. Raises UnreadableStatement."""
    text, backslash = unwrapped(statement, sql_mode, flavor), _is_escape(sql_mode)
    try:
        found = _TOKENIZERS[backslash](dialect="mysql").tokenize(text)
    except TokenError as error:
        raise UnreadableStatement from error
    tokens = [token for joined in found for token in _split(joined, text, backslash=backslash)]
    while tokens and tokens[-1].keyword == ";":
        tokens.pop()
    return tokens


def _split(joined: sqlglot.Token, text: str, *, backslash: bool) -> Iterator[Token]:
    """Yield a token of sqlglot, split into words if sqlglot joined several (PRIMARY KEY, DOUBLE PRECISION)."""
    raw = text[joined.start : joined.end + 1]
    if raw[0] == "`" or joined.token_type in _LITERALS:
        yield Token("?", raw, joined.start, backslash)
    elif _WORD_START.match(raw):
        for word in _WORD.finditer(raw):
            yield Token(word[0].upper(), word[0], joined.start + word.start())
    else:
        yield Token(joined.text.upper(), raw, joined.start)


def unwrapped(statement: str, sql_mode: int, flavor: Flavor) -> str:
    """Replace the marks of `/*! … */`, `/*!40005 … */` and MariaDB's `/*M! … */` by spaces.

    A server executes the text between these marks. A comment for a later release is logged as `/* … */`;
    to MySQL, `/*M! … */` is such a comment as it is.
    """

    def without_marks(found: re.Match[str]) -> str:
        if not found["open"] or (flavor == "mysql" and found["open"].startswith("/*M!")):
            return found[0]
        return " " * len(found["open"]) + found["text"] + " " * len(found["close"])

    return _EXECUTED[_is_escape(sql_mode)].sub(without_marks, statement)


def _is_escape(sql_mode: int) -> bool:
    """Return whether a backslash in a literal is an escape character."""
    return not sql_mode & _NO_BACKSLASH_ESCAPES
