"""The types of setting values: sizes, durations, names, addresses and URLs; and what all sections share."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, StringConstraints

_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _read_size(value: object) -> object:
    """Convert `256MiB` to bytes."""
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB)", value)):
        return int(match[1]) * _BYTES[match[2]]
    return value


def _read_duration(value: object) -> object:
    """Convert `1.5s`, `90m` or `6h` to seconds."""
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", value)):
        return float(match[1]) * _SECONDS[match[2]]
    return value


def _read_topic_setting(value: object) -> object:
    """Convert a number or boolean of YAML to text as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool | int | float) else value


def _require_valid_port(address: str) -> str:
    if int(address.rpartition(":")[2]) >= 2**16:
        raise ValueError("the port must be at most 65535")
    return address


#: bytes, as a number or as `256MiB`
Size = Annotated[int, BeforeValidator(_read_size), Field(gt=0, title="size")]
#: seconds, as a number or as `500ms`, `60s` or `6h`
Duration = Annotated[float, BeforeValidator(_read_duration), Field(gt=0, title="duration")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"), Field(title="name")]
HostPort = Annotated[
    str,
    StringConstraints(pattern=r"^(\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):\d{1,5}$"),
    AfterValidator(_require_valid_port),
    Field(title="`host:port`"),
]
TopicSetting = Annotated[str, BeforeValidator(_read_topic_setting)]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$"), Field(title="URL")]
FileUrl = Annotated[str, StringConstraints(pattern=r"^file:///"), Field(title="`file:///` URL")]


class Section(BaseModel):
    """One mapping of the configuration. The text under each setting is its line in docs/reference/configuration.md."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    def load_secret(self, key: str) -> None:
        """Read the secret `key` from the file that the setting `KEY_file` names, if it names one. Raises ValueError."""
        path: Path | None = getattr(self, f"{key}_file")
        if path is None:
            return
        try:
            text = path.read_text()
        except OSError as error:
            raise ValueError(f"{key}_file cannot be read: {error.strerror}: {error.filename}") from error
        object.__setattr__(self, key, SecretStr(text.rstrip("\n")))
