"""compose.yaml as Compose reads it: with the values of variables, or their defaults."""

import re
from pathlib import Path
from typing import Any

import yaml

_TEXT = (Path(__file__).parents[2] / "compose.yaml").read_text()
_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+):-([^}]*)\}")

#: variables and their defaults
DEFAULTS: dict[str, str] = dict(_VARIABLE.findall(_TEXT))


def compose_file(**variables: str) -> dict[str, Any]:
    """Parse the file with these values of variables."""
    text = _VARIABLE.sub(lambda match: variables.get(match[1]) or match[2], _TEXT)
    return yaml.safe_load(text.replace("$$", "$"))
