"""The words of a statement, read one after the other by a grammar that refuses what it does not know."""

import re
from typing import NamedTuple

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from databus.errors import CannotApply
from databus_changes.catalog import unescaped
from databus_changes.ddl.tokens import keyword, tokenize

_LITERALS = {TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.NATIONAL_STRING}
_NAME = re.compile(r"[\w$]+")


class _Word(NamedTuple):
    keyword: str  # upper case; "?" for what is quoted
    kind: TokenType
    raw: str


class Words:
    """A place among a statement's words. Every method but `take` raises CannotApply at a word it does not want."""

    def __init__(self, query: str) -> None:
        try:
            tokens = tokenize(query)
        except TokenError as error:
            raise CannotApply("it cannot be split into words") from error
        self._words = [word for token in tokens for word in _split(token, query)]
        while self._words and self._words[-1].keyword == ";":
            self._words.pop()
        self._at = 0

    @property
    def next(self) -> str:
        """The keyword that comes next: "?" for something quoted, "" at the end."""
        return self._words[self._at].keyword if self._at < len(self._words) else ""

    def take(self, *phrase: str) -> bool:
        """Step over these keywords, if all of them come next."""
        found = [word.keyword for word in self._words[self._at : self._at + len(phrase)]]
        if found != list(phrase):
            return False
        self._at += len(phrase)
        return True

    def expect(self, *phrase: str) -> None:
        """Step over these keywords."""
        if not self.take(*phrase):
            raise self.refusal()

    def skip(self) -> str:
        """Step over one word, or over all that a parenthesis holds; give its keyword."""
        word, depth = self.next, 0
        while self._at < len(self._words):
            depth += {"(": 1, ")": -1}.get(self.next, 0)
            self._at += 1
            if depth <= 0:
                break
        if depth or not word:
            raise self.refusal()
        return word

    def skip_item(self) -> None:
        """Step over everything up to the next comma or closing parenthesis."""
        while self.next not in {"", ",", ")"}:
            self.skip()

    def name(self) -> str:
        """Read an identifier."""
        if self._at < len(self._words):
            word = self._words[self._at]
            if word.kind == TokenType.IDENTIFIER:
                self._at += 1
                return word.raw[1:-1].replace("``", "`")
            if word.raw.startswith('"'):
                self._at += 1
                return word.raw[1:-1].replace('""', '"')
            if word.keyword != "?" and _NAME.fullmatch(word.raw):
                self._at += 1
                return word.raw
        raise self.refusal()

    def qualified(self, default_schema: str) -> tuple[str, str]:
        """Read a table's name."""
        name = self.name()
        return (name, self.name()) if self.take(".") else (default_schema, name)

    def names(self) -> list[str]:
        """Read `(name [(length)] [ASC|DESC], …)`; an expression among them is an empty name."""
        found: list[str] = []
        self.expect("(")
        while True:
            if self.next == "(":
                found.append("")
                self.skip()
            else:
                found.append(self.name())
                if self.next == "(":
                    self.skip()
            self.take("ASC") or self.take("DESC")
            if not self.take(","):
                break
        self.expect(")")
        return found

    def text(self) -> str:
        """Read a string."""
        if self._at < len(self._words) and self._words[self._at].kind == TokenType.STRING:
            self._at += 1
            return unescaped(self._words[self._at - 1].raw)
        raise self.refusal()

    def number(self) -> int:
        """Read an unsigned number."""
        if not self.next.isascii() or not self.next.isdigit():
            raise self.refusal()
        return int(self.skip())

    def refusal(self) -> CannotApply:
        """Say which word is not understood, unless it may be data."""
        what = {"": "its end", "?": "a quoted word"}.get(self.next, self.next)
        return CannotApply(f"{what} (word {self._at + 1}) is not understood")


def _split(token: Token, query: str) -> list[_Word]:
    """Take apart what the tokenizer put together (PRIMARY KEY); a literal is no keyword."""
    raw = query[token.start : token.end + 1]
    if keyword(token) == "?" or token.token_type in _LITERALS:
        return [_Word("?", token.token_type, raw)]
    if _NAME.match(raw):
        return [_Word(part.upper(), token.token_type, part) for part in raw.split()]
    return [_Word(token.text.upper(), token.token_type, raw)]
