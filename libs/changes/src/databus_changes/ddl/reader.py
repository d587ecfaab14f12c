"""Reads the tokens of a statement in order, for a grammar that refuses what it does not know."""

import re
from collections.abc import Sequence

from databus_changes.ddl.token import Token
from databus_changes.tables import TableName
from databus_core.errors import CannotApply
from databus_core.literals import unescaped

_SIGNS = {"-", "+", "."}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class TokenReader:
    """A position in a statement's tokens. Methods that read or skip tokens may raise CannotApply, except `take`."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._index = 0

    @property
    def next(self) -> str:
        """The next token's keyword (see `Token.keyword`); "" at the end of the statement."""
        token = self._peek()
        return token.keyword if token else ""

    def take(self, *phrase: str) -> bool:
        """Skip these keywords, if all of them come next; return whether they did."""
        found = [token.keyword for token in self._tokens[self._index : self._index + len(phrase)]]
        if found != list(phrase):
            return False
        self._index += len(phrase)
        return True

    def expect(self, *phrase: str) -> None:
        """Skip these keywords."""
        if not self.take(*phrase):
            raise self.unexpected()

    def skip(self) -> str:
        """Skip one token, or parentheses with their content; return the keyword of the first token."""
        keyword, depth = self.next, 0
        while self._index < len(self._tokens):
            depth += {"(": 1, ")": -1}.get(self.next, 0)
            self._index += 1
            if depth <= 0:
                break
        if depth or not keyword:
            raise self.unexpected()
        return keyword

    def skip_item(self) -> None:
        """Skip everything up to the next comma or closing parenthesis."""
        while self.next not in {"", ",", ")"}:
            self.skip()

    def skip_value(self) -> None:
        """Skip a literal, an expression in parentheses, or a function's call."""
        while self.next in _SIGNS:
            self.skip()
        is_introducer = self.next.startswith("_")  # _utf8mb4'text'
        is_parenthesis = self.next == "("
        self.skip()
        if is_introducer and self.next == "?":
            self.skip()
        if not is_parenthesis and self.next == "(":
            self.skip()

    def literal(self) -> tuple[str | None, bool]:
        """Read the value of a DEFAULT. Return the text of a string or number, None for NULL; and whether it is neither.

        A text with a backslash is neither, because the session's sql_mode decides what that means.
        """
        begin = self._index
        self.skip_value()
        tokens = self._tokens[begin : self._index]
        text = "".join(token.raw for token in tokens)
        if len(tokens) == 1 and tokens[0].is_string:
            return (None, True) if "\\" in text else (unescaped(text), False)
        if text.upper() == "NULL":
            return None, False
        return (text, False) if _NUMBER.fullmatch(text) else (None, True)

    def skip_rest(self) -> None:
        """Skip everything up to the end."""
        while self.next:
            self.skip()

    def name(self) -> str:
        """Read an identifier."""
        token = self._peek()
        if token is None or not token.is_name:
            raise self.unexpected()
        self._index += 1
        return token.text

    def table_name(self, default_schema: str) -> TableName:
        """Read `[schema.]table`."""
        name = self.name()
        return (name, self.name()) if self.take(".") else (default_schema, name)

    def key_columns(self) -> tuple[list[str], bool]:
        """Read `(name [(length)] [ASC|DESC], …)`.

        Return the names, "" for an expression, and whether a name has a length: the index contains only a prefix.
        """
        columns: list[str] = []
        has_prefix = False
        self.expect("(")
        while True:
            if self.next == "(":
                columns.append("")
                self.skip()
            else:
                columns.append(self.name())
                if self.next == "(":
                    has_prefix = True
                    self.skip()
            self.take("ASC") or self.take("DESC")
            if not self.take(","):
                break
        self.expect(")")
        return columns, has_prefix

    def string(self) -> str:
        """Read a string literal."""
        token = self._peek()
        if token is None or not token.is_string:
            raise self.unexpected()
        self._index += 1
        return unescaped(token.raw, backslash=token.backslash)

    def number(self) -> int:
        """Read an unsigned integer."""
        if not self.next.isascii() or not self.next.isdigit():
            raise self.unexpected()
        return int(self.skip())

    def unexpected(self) -> CannotApply:
        """Return an error that names the next token, unless it is a quoted text, which may be data."""
        what = {"": "the end of the statement", "?": "a quoted text"}.get(self.next, self.next)
        return CannotApply(f"{what} (token {self._index + 1}) is not understood")

    def _peek(self) -> Token | None:
        return self._tokens[self._index] if self._index < len(self._tokens) else None
