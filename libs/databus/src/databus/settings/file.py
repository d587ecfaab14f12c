"""Read the configuration from a YAML file and the environment."""

import argparse
import os
from pathlib import Path

import yaml
from pydantic import ValidationError
from pydantic_settings import SettingsError
from yaml.parser import ParserError
from yaml.scanner import ScannerError

from databus.errors import InvalidSettings
from databus.settings.root import Settings


def config_path() -> Path:
    """Return the path of the file that is read without `--config`."""
    return Path(os.environ.get("DATABUS_CONFIG", "/etc/databus/databus.yaml"))


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the option `--config`, which gives the path for `load`."""
    parser.add_argument(
        "--config",
        type=Path,
        default=config_path(),
        metavar="FILE",
        help="configuration file (default: %(default)s, or $DATABUS_CONFIG)",
    )


def load(path: Path) -> Settings:
    """Read and validate the configuration. Raises InvalidSettings with a line for each error found."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSettings(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{path}: not UTF-8 text") from error
    except yaml.YAMLError as error:
        raise InvalidSettings(f"{path}: not valid YAML{_yaml_problem(error)}") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise InvalidSettings(f"{path}: expected a mapping of sections (name, source, redis, kafka, …)")
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except SettingsError as error:
        raise InvalidSettings(f"environment: {error}: write lists and mappings as JSON") from error
    except ValidationError as error:
        lines = (f"{path}: {_key(e['loc'])}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors())
        raise InvalidSettings("\n".join(lines)) from error


def _yaml_problem(error: yaml.YAMLError) -> str:
    """Describe where and why a file is not YAML, without quoting it: it may contain a password."""
    mark = getattr(error, "problem_mark", None)
    problem = f": {error.problem}" if isinstance(error, ScannerError | ParserError) else ""
    return f" at line {mark.line + 1}, column {mark.column + 1}{problem}" if mark else ""


def _refuse_unknown_variables() -> None:
    """Raise InvalidSettings for a variable that has the prefix of overrides but overrides nothing."""
    prefix = Settings.model_config["env_prefix"]
    for variable in os.environ:
        if not variable.startswith(prefix):
            continue
        section, _, key = variable.removeprefix(prefix).lower().partition("__")
        field = Settings.model_fields.get(section)
        known = getattr(field.annotation, "model_fields", {}) if field else {}
        if field is None or (key and key.partition("__")[0] not in known):
            raise InvalidSettings(f"environment: {variable} overrides nothing: there is no {section}.{key}".rstrip("."))


def _key(location: tuple[int | str, ...]) -> str:
    """Return the key's path in the file for the location of an error. Rules are numbered from 1."""
    if location[:2] == ("publisher", "routes") and len(location) > 2:
        index, *inside = location[2:]
        return ": ".join(["publisher.routes", f"rule {int(index) + 1}", *([_key(tuple(inside))] if inside else [])])
    return ".".join(str(part) for part in location) or "configuration"
