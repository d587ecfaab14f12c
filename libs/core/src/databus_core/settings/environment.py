"""The environment variables that override settings of the file; upper and lower case do not differ."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from databus_core.errors import InvalidSettings
from databus_core.settings.faults import Location, section_of
from databus_core.settings.root import Settings

_PREFIX: str = Settings.model_config["env_prefix"]
_JSON = """["A", "B"] for a list, {"KEY": "VALUE"} for a mapping"""


def check_overrides() -> None:
    """Raise InvalidSettings, with a line for each variable that overrides nothing or cannot be read."""
    known = dict(_known(Settings, _PREFIX))
    faults = [fault for name, value in sorted(_variables().items()) if (fault := _fault(name, value, known))]
    if faults:
        raise InvalidSettings("\n".join(f"environment: {fault}" for fault in faults))


def variables() -> Iterator[tuple[str, bool]]:
    """Yield each variable that overrides something, and whether it is a mapping, whose keys are variables, too."""
    for name, annotation in _known(Settings, _PREFIX):
        yield name, _has_origin(annotation, dict)


def variable_of(location: Location) -> str:
    """Return the variable that sets the value at a location, alone or as a part of JSON; "" if none does."""
    variables = _variables()
    for end in range(len(location), 0, -1):
        name = _name(location[:end])
        if name in variables and (end == len(location) or _contains(json.loads(variables[name]), location[end:])):
            return name
    return ""


def variables_in(location: Location) -> list[str]:
    """List the variables that set keys of a section."""
    return sorted(name for name in _variables() if name.startswith(f"{_name(location)}__"))


def _variables() -> dict[str, str]:
    return {name.upper(): value for name, value in os.environ.items() if name.upper().startswith("DATABUS_")}


def _name(location: Location) -> str:
    return _PREFIX + "__".join(map(str, location)).upper()


def _known(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the variable and the type of each setting and section."""
    for key, field in model.model_fields.items():
        name, section = f"{prefix}{key.upper()}", section_of(field.annotation)
        yield name, field.annotation
        if section and not _has_origin(field.annotation, list):
            yield from _known(section, f"{name}__")


def _fault(name: str, value: str, known: Mapping[str, Any]) -> str:
    """Say what is wrong with a variable; "" if nothing is."""
    if name in known:
        wants_json = section_of(known[name]) or _has_origin(known[name], list, dict)
        return f"{name} must be JSON, such as {_JSON}" if wants_json and not _is_json(value) else ""
    if any(_has_origin(kind, dict) and name.startswith(f"{mapping}__") for mapping, kind in known.items()):
        return ""
    if not name.startswith(_PREFIX):  # a variable of somebody else, unless it differs from one of ours only by a _
        alike = [each for each in known if each.replace("__", "_") == name.replace("__", "_")]
        return f"{name} overrides nothing; did you mean {alike[0]}?" if alike else ""
    level = [each for each in known if each.count("__") == name.count("__")]
    alike = get_close_matches(name, level, n=1, cutoff=0.85)
    key = name.removeprefix(_PREFIX).lower().replace("__", ".")
    return f"{name} overrides nothing: there is no {key}" + (f"; did you mean {alike[0]}?" if alike else "")


def _has_origin(annotation: Any, *origins: type) -> bool:
    """Return whether an annotation is a generic type such as `list[Rule]`, perhaps annotated or in a union."""
    origin = get_origin(annotation)
    if origin in (Annotated, Union, UnionType):
        return any(_has_origin(part, *origins) for part in get_args(annotation))
    return origin in origins


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _contains(value: Any, location: Location) -> bool:
    """Return whether a value, parsed from JSON, has something at a location."""
    with suppress(LookupError, TypeError):
        for part in location:
            value = value[part]
        return True
    return False
