"""String literals, as statements and information_schema write them."""

import re

_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPES = {quote: re.compile(rf"{quote}{quote}|\\(.)", re.DOTALL) for quote in "'\""}
_CONTROL = {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a", "t": "\t"}
_BACKSPACE = {"b": "\b"}


def labels(column_type: str) -> tuple[str, ...]:
    """Return the labels of an ENUM or SET from its COLUMN_TYPE."""
    return tuple(_ESCAPES["'"].sub(_unescape, label) for label in _LABEL.findall(column_type))


def unescaped(literal: str, *, backslash: bool = True) -> str:
    """Return the text of a string literal, which is given with its quotes; `backslash`: whether it escapes."""
    quote, text = literal[0], literal[1:-1]
    if not backslash:
        return text.replace(quote * 2, quote)
    return _ESCAPES[quote].sub(_unescape_literal, text)


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    return match[0][0] if escaped is None else _CONTROL.get(escaped, escaped)


def _unescape_literal(match: re.Match[str]) -> str:
    # A server keeps the backslash of \% and \_, which are for LIKE.
    return match[0] if match[1] in {"%", "_"} else _BACKSPACE.get(match[1]) or _unescape(match)
