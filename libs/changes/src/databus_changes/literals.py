"""String literals, as statements and information_schema write them."""

import re

_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROL = {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a", "t": "\t"}
_BACKSPACE = {"b": "\b"}


def labels(column_type: str) -> tuple[str, ...]:
    """Return the labels of an ENUM or SET from its COLUMN_TYPE."""
    return tuple(_ESCAPE.sub(_unescape, label) for label in _LABEL.findall(column_type))


def unescaped(literal: str) -> str:
    """Return the text of a string literal, which is given with its quotes."""
    quote, text = literal[0], literal[1:-1]
    return _ESCAPE.sub(_unescape_literal, text.replace(quote * 2, quote) if quote == '"' else text)


def _unescape(match: re.Match[str]) -> str:
    return "'" if match[0] == "''" else _CONTROL.get(match[1], match[1])


def _unescape_literal(match: re.Match[str]) -> str:
    # A server keeps the backslash of \% and \_, which are for LIKE.
    return match[0] if match[1] in {"%", "_"} else _BACKSPACE.get(match[1]) or _unescape(match)
