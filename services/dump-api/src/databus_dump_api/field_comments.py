"""What the `#:` comments in the source of a struct say about its fields, for the OpenAPI document."""

import inspect
import re
from collections.abc import Iterator

import msgspec


def structs_in(*kinds: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    """Return these structs and all that their fields consist of."""
    return set(_structs(msgspec.inspect.multi_type_info(kinds)))


def comments(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the comment above each field that has one."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in inspect.getsource(struct).splitlines():
        if above := re.match(r" {4}#: ?(.*)", line):
            comment.append(above[1])
        elif comment and (field := re.match(r" {4}(\w+):", line)):
            found[field[1]] = " ".join(comment)
            comment = []
        else:
            comment = []
    return found


def _structs(info: object) -> Iterator[type[msgspec.Struct]]:
    """Walk msgspec's description of types, which consists of structs itself."""
    if isinstance(info, msgspec.inspect.StructType):
        yield info.cls
        yield from _structs([field.type for field in info.fields])
    elif isinstance(info, list | tuple):
        for each in info:
            yield from _structs(each)
    elif isinstance(info, msgspec.inspect.Type):
        yield from _structs([getattr(info, name) for name in info.__struct_fields__])
