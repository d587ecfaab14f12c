"""JSON as Go's encoding/json writes it: keys sorted, no white space, HTML characters escaped."""

import re
from decimal import Decimal
from typing import Any

import msgspec

_INTEGERS = range(-(2**63), 2**64)
_ESCAPED = re.compile(r'[\x00-\x1f"\\<>&\u2028\u2029]')
_SHORT_ESCAPES = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def marshal(text: bytes) -> bytes:
    """Rewrite a JSON document. Raises ValueError if the text is not JSON."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("not a JSON document") from None
    return _value(document).encode()


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{','.join(map(_value, value))}]"
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode())
        return f"{{{','.join(f'{_string(name)}:{_value(item)}' for name, item in members)}}}"
    if isinstance(value, float) or (isinstance(value, int) and value not in _INTEGERS):
        return _float(float(value))
    return "null" if value is None else str(value).lower()


def _float(number: float) -> str:
    """Write the shortest digits that are read as the same number; a very small or large one gets an exponent."""
    if number == 0 or 1e-6 <= abs(number) < 1e21:
        return format(Decimal(repr(number)), "f").removesuffix(".0")
    digits, _, exponent = repr(number).partition("e")
    return f"{digits.removesuffix('.0')}e{exponent[0]}{exponent[1:].lstrip('0')}"


def _string(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"
