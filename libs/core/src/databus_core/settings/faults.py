"""Describe pydantic's errors in words: what must be written, what was written instead, never a secret."""

import re
from collections.abc import Sequence
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

#: the keys and list indexes that lead to a setting
Location: TypeAlias = tuple[int | str, ...]

#: kind of pydantic's error → what it needs
_NEEDED = {
    "string_type": "text",
    "path_type": "a path",
    "list_type": "a list, as in [A, B]",
    "tuple_type": "a list, as in [A, B]",
    "model_type": "a mapping, as in {KEY: VALUE}",
    "dict_type": "a mapping, as in {KEY: VALUE}",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
}
#: type of a value in YAML or JSON → its name
_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    date: "a date",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}
_LONGEST = 100


def shown_text(text: str) -> str:
    """Quote a value, shortened, without what stands before an @: that may contain a password."""
    return repr(re.sub(r".*@", "…@", text, flags=re.DOTALL)[:_LONGEST])


def describe(model: type[BaseModel], error: "ErrorDetails") -> str:
    """Describe an error that the validation of `model` found."""
    kind, given, text = error["type"], error["input"], error["msg"].removeprefix("Value error, ")
    match kind:
        case "missing":
            text = "is missing; this key is required"
        case "extra_forbidden":
            *section, key = error["loc"]
            text = f"there is no such key; {_advice(str(key), _keys(model, section))}"
        case "too_short" | "string_too_short":  # each minimum is 1
            text = "must not be empty"
        case "string_type" if given is None:
            text = "has no value; write text that begins with # in quotes"
        case "string_type" if not isinstance(given, list | dict):
            text = f"must be text, not {_kind(given)}; write it in quotes"
        case "model_type" | "dict_type" if given is None:
            text = "has no keys; indent them under it, or remove it"
        case _ if needed := _NEEDED.get(kind):
            text = f"must be {needed}, not {_shown(given) if kind.endswith(('_parsing', '_float')) else _kind(given)}"
        case _ if text.startswith("Input should be "):  # one of several choices, or within limits
            text = f"{text.replace('Input should', 'must', 1)}, not {_shown(given)}"
    return text


def _advice(name: str, known: Sequence[str]) -> str:
    """Suggest the known name that is most similar to a wrong one; if none is similar, list all."""
    similar = get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f"did you mean {similar[0]}?" if similar else f"known are {', '.join(known)}"


def _keys(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """List the keys of the mapping at a location in a model."""
    for part in location:
        if isinstance(part, str):  # not an index of a list
            annotation = next(field.annotation for name, field in model.model_fields.items() if name == part)
            model = section_of(annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def section_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model in an annotation such as `Model | None` or `list[Model]`, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(section_of, get_args(annotation))), None)


def _shown(given: object) -> str:
    if isinstance(given, str):
        return shown_text(given)
    return str(given) if type(given) in (int, float) else _kind(given)


def _kind(given: object) -> str:
    return _KINDS.get(type(given), "another kind of value")
