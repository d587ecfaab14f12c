"""Applies MySQL's partial updates of JSON (binlog_row_value_options=PARTIAL_JSON): diffs of a document.

Layout and meaning: Json_diff_vector and apply_json_diffs in sql/json_diff.cc; paths: sql-common/json_path.cc.

Only the containers on a path are parsed; everything else keeps its text. Bytes are handled as Latin-1: each character
is a byte, so names sort as they do in the server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from databus_binlog.cursor import Cursor


class _Cell(NamedTuple):
    """A leg of a path, `[number]` or `[last-number]`."""

    number: int
    from_end: bool

    def position(self, count: int) -> int:
        """Return the cell's index in an array of `count` cells: `count` if after the end, 0 if before the start."""
        return max(count - 1 - self.number, 0) if self.from_end else min(self.number, count)


_Leg: TypeAlias = str | _Cell  #: the name of a member, or a cell
_Value: TypeAlias = "str | _Container"  #: the text of a value, or a parsed container
_Container: TypeAlias = "dict[Any, _Value] | list[_Value]"  #: an object's members by name, or an array's cells

_OPERATIONS = ("REPLACE", "INSERT", "REMOVE")
_LEG = re.compile(
    r'\.(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<name>[^".\[*]+))|\[(?:(?P<number>\d+)|last(?:-(?P<back>\d+))?)\]',
    re.ASCII,
)
_decode = json.JSONDecoder().raw_decode
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def apply_diffs(before: bytes, diffs: bytes, text_of: Callable[[bytes], bytes]) -> bytes:
    """Return the after image's text: `before`, as the server prints it, with `diffs` applied in their order.

    `diffs` does not include the total length that precedes it in the log. `text_of` turns MySQL's binary JSON into the
    server's text.

    Raises ValueError if a diff can't be read or does not fit the document.
    """
    if not diffs:  # the column did not change
        return before
    root: dict[Any, _Value] = {"$": before.decode("latin-1")}
    cursor = Cursor(diffs)
    while cursor:
        operation, path, value = _read(cursor)
        text = "" if operation == "REMOVE" else text_of(value).decode("latin-1")
        try:
            parent: _Container = root
            for leg in path[:-1]:
                parent = _enter(parent, leg)
            match operation:
                case "REPLACE":
                    parent[_key(parent, path[-1])] = text
                case "INSERT":
                    _insert(parent, path[-1], text)
                case "REMOVE":
                    del parent[_key(parent, path[-1])]
            after = root["$"]
        except LookupError:
            raise ValueError(f"JSON diff does not fit its document: {operation} of {_kind(path)}") from None
    return _print(after).encode("latin-1")


def _read(cursor: Cursor) -> tuple[str, list[_Leg], bytes]:
    """Read operation u8, path and, except for REMOVE, value. Length-encoded lengths precede path and value."""
    operation, path = "unknown operation", list[_Leg]()
    try:
        operation = _OPERATIONS[cursor.uint(1)]
        path = _legs(cursor.lenenc_bytes().decode("latin-1"))
        return operation, path, b"" if operation == "REMOVE" else cursor.lenenc_bytes()
    except (LookupError, ValueError):
        raise ValueError(f"JSON diff can't be read: {operation} of {_kind(path)}") from None


def _legs(path: str) -> list[_Leg]:
    """Parse a path; its first leg, `$`, leads to the document."""
    if path[0] != "$":
        raise ValueError("no path")
    legs: list[_Leg] = ["$"]
    at = 1
    while at < len(path):
        leg = _LEG.match(path, at)
        if leg is None:
            raise ValueError("no leg of a path")
        if leg["quoted"]:
            legs.append(json.loads(leg["quoted"]))
        else:
            number = leg["number"] or leg["back"] or 0
            legs.append(leg["name"] or _Cell(int(number), from_end=leg["number"] is None))
        at = leg.end()
    return legs


def _kind(path: list[_Leg]) -> str:
    """Describe what a path leads to, without the names in the path, which are row data."""
    if len(path) < 2:
        return "the root" if path else "an unreadable path"
    return "a cell" if isinstance(path[-1], _Cell) else "a member"


def _key(parent: _Container, leg: _Leg) -> Any:
    """Return the name or index of what `leg` leads to. Raise LookupError if there is nothing."""
    if isinstance(parent, dict) and leg in parent:
        return leg
    if isinstance(parent, list) and isinstance(leg, _Cell) and leg.number < len(parent):
        return leg.position(len(parent))
    raise LookupError


def _enter(parent: _Container, leg: _Leg) -> _Container:
    """Return the container at `leg`, which is parsed once, when it is first entered."""
    key = _key(parent, leg)
    child = parent[key]
    if isinstance(child, str):
        child = parent[key] = _split(child)
    return child


def _insert(parent: _Container, leg: _Leg, text: str) -> None:
    """Add a new member, or a cell at `leg`: before the one that is there, or at the end."""
    if isinstance(parent, list) and isinstance(leg, _Cell):
        parent.insert(leg.position(len(parent)), text)
    elif isinstance(parent, dict) and isinstance(leg, str) and leg not in parent:
        parent[leg] = text
    else:
        raise LookupError


def _split(text: str) -> _Container:
    """Split an object or array into the texts of its members or cells. Raise LookupError for any other value."""
    if text[0] not in "{[":
        raise LookupError
    parts: list[Any] = []
    at = 1
    while at < len(text) - 1:
        end = _decode(text, at)[1]
        parts.append(text[at:end])
        at = end + 2  # past ", ", or ": " after a member's name
    return parts if text[0] == "[" else dict(zip(map(json.loads, parts[::2]), parts[1::2], strict=True))


def _print(value: _Value) -> str:
    """Print a value; an object's members are sorted by the lengths of their names, then by the names' bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_print, value))}]"
    names = sorted(value, key=lambda name: (len(name), name))
    return "{" + ", ".join(f"{_quoted(name)}: {_print(value[name])}" for name in names) + "}"
