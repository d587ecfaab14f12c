"""Read the configuration from a YAML file and the environment."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError
from yaml.parser import ParserError
from yaml.scanner import ScannerError

from databus_core.errors import InvalidSettings
from databus_core.settings import environment
from databus_core.settings.faults import Location, describe
from databus_core.settings.root import Settings

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def load(path: Path) -> Settings:
    """Read and validate the configuration. Raises InvalidSettings with a line for each error found."""
    values = _read(path)
    environment.check_overrides()
    try:
        return Settings(**values)
    except ValidationError as error:
        lines = (line for fault in error.errors() for line in _lines(path, fault))
        raise InvalidSettings("\n".join(lines)) from error


def _lines(path: Path, fault: "ErrorDetails") -> list[str]:
    """Describe an error, and where the wrong value is: in the file, or in a variable of the environment.

    Errors that concern several keys come together, a line each, and name their keys themselves.
    """
    text = describe(Settings, fault)
    if not fault["loc"]:
        return [f"{path}: {line}" for line in text.splitlines()]
    location = fault["loc"][:-1] if fault["type"] == "missing" else fault["loc"]
    variable, others = environment.variable_of(location), environment.variables_in(location)
    origin = f"environment: {variable}" if variable else path
    also = f" (the environment sets {', '.join(others)})" if others and not variable else ""
    return [f"{origin}: {_key(fault['loc'])}: {text}{also}"]


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise InvalidSettings(f"{path}: {error.strerror} (give the file by --config or DATABUS_CONFIG)") from error
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{path}: not UTF-8 text") from error
    except yaml.YAMLError as error:
        raise InvalidSettings(f"{path}: not valid YAML{_yaml_problem(error)}") from error
    if values is None:
        raise InvalidSettings(f"{path}: the file is empty; it needs at least `name: NAME`")
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise InvalidSettings(f"{path}: must be a mapping of sections (name, source, redis, kafka, …)")
    return values


class _Loader(yaml.SafeLoader):
    """Refuses a mapping that has a key twice: YAML would use only the last value."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise ParserError(None, None, f"the key {key.value} is there twice", key.start_mark)
            if isinstance(key.value, str):
                seen.add(key.value)
        return node


def _yaml_problem(error: yaml.YAMLError) -> str:
    """Describe where and why a file is not YAML, without quoting it: it may contain a password."""
    mark = getattr(error, "problem_mark", None)
    problem = f": {error.problem}" if isinstance(error, ScannerError | ParserError) else ""
    if "'\\t'" in problem:
        problem += "; indent with spaces, not with tabs"
    return f" at line {mark.line + 1}, column {mark.column + 1}{problem}" if mark else ""


def _key(location: Location) -> str:
    """Return the key's path in the file for the location of an error. Rules are numbered from 1."""
    if location[:2] == ("publisher", "routes") and len(location) > 2:
        index, *inside = location[2:]
        return ": ".join(["publisher.routes", f"rule {int(index) + 1}", *([_key(tuple(inside))] if inside else [])])
    return ".".join(str(part) for part in location if part != "[key]")  # the wrong key itself precedes it
