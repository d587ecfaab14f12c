"""The types of setting values: sizes, durations, names, addresses and URLs; and what all sections share."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, StringConstraints

from databus_core.settings.faults import shown_text

_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_NUMBER = r"\d+(?:\.\d+)?"


def _read_size(value: object) -> object:
    """Convert `256MiB` to bytes."""
    if not isinstance(value, str) or value.isdecimal():
        return value
    if match := re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB)", value):
        return int(match[1]) * _BYTES[match[2]]
    raise ValueError(f"must be bytes, or a size such as 256MiB (B, KiB, MiB or GiB), not {shown_text(value)}")


def _read_duration(value: object) -> object:
    """Convert `1.5s`, `90m` or `6h` to seconds."""
    if not isinstance(value, str) or re.fullmatch(_NUMBER, value):
        return value
    if match := re.fullmatch(rf"({_NUMBER})\s*(ms|s|m|h|d)", value):
        return float(match[1]) * _SECONDS[match[2]]
    raise ValueError(f"must be seconds, or a duration such as 90s (ms, s, m, h or d), not {shown_text(value)}")


def read_duration(text: str) -> float:
    """Read a duration, written as in the configuration, from a command's option. Raises ValueError."""
    return float(str(_read_duration(text)))


def _read_property(value: object) -> object:
    """Convert a number or boolean of YAML to text as Java writes it."""
    return str(value).lower() if isinstance(value, bool | int | float) else value


def _require(pattern: str, expected: str) -> AfterValidator:
    """Make the validator of a text that matches a pattern; `expected` is the pattern in words, with an example."""

    def validate(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {expected}, not {shown_text(text)}")
        return text

    return AfterValidator(validate)


def _require_valid_port(address: str) -> str:
    if int(address.rpartition(":")[2]) >= 2**16:
        raise ValueError(f"the port must be at most 65535, not that of {shown_text(address)}")
    return address


def _require_no_password(url: str) -> str:
    """Refuse a login in a URL, because errors and logs quote the URL."""
    if re.match(r"\w+://[^/@]*:[^/]*@", url):
        raise ValueError("the URL must not contain a login: set it by properties in spark.conf")
    return url


#: bytes, as a number or as `256MiB`
Size = Annotated[int, BeforeValidator(_read_size), Field(gt=0, title="size")]
#: seconds, as a number or as `500ms`, `60s` or `6h`
Duration = Annotated[float, BeforeValidator(_read_duration), Field(gt=0, allow_inf_nan=False, title="duration")]
#: like a Duration; 0: never
Interval = Annotated[float, BeforeValidator(_read_duration), Field(ge=0, allow_inf_nan=False, title="duration")]
Name = Annotated[
    str,
    _require(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", "1 to 63 of A-Z, a-z, 0-9, _ and -, for example shop_1"),
    Field(title="name"),
]
HostPort = Annotated[
    str,
    _require(
        r"(\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):[0-9]{1,5}",
        "host:port, for example db1:3306, kafka1:9092 or [::1]:9101",
    ),
    AfterValidator(_require_valid_port),
    Field(title="`host:port`"),
]
TablePattern = Annotated[
    str,
    StringConstraints(max_length=300),
    _require(r"[^.]+\.[^.]+", "schema.table, where * and ? are wildcards, for example shop.* or shop.orders"),
    Field(title="`schema.table` pattern", json_schema_extra={"pattern": r"^[^.]+\.[^.]+$"}),
]
TopicSetting = Annotated[str, BeforeValidator(_read_property)]
SparkMaster = Annotated[
    str,
    _require(
        r"local(\[(\*|[1-9]\d*)\])?|spark://\S+|yarn|k8s://\S+",
        "local[N], local[*], spark://HOST:PORT, yarn or k8s://URL",
    ),
]
SparkProperty = Annotated[str, _require(r"spark\.\S+", "a property of Spark, for example spark.executor.memory")]
#: secret, as those of some properties are
SparkValue = Annotated[SecretStr, BeforeValidator(_read_property)]
HttpUrl = Annotated[
    str,
    _require(r"https?://[^\s/]+(/\S*)?", "a URL that begins with http:// or https://, for example http://host:8080"),
    Field(title="URL"),
]
StorageUrl = Annotated[
    str,
    _require(
        r"file:///.*|s3://[a-z0-9][a-z0-9.-]+(/\S*)?",
        "a folder as a URL, for example file:///var/lib/databus/data or s3://bucket/prefix",
    ),
    Field(title="`file:///` or `s3://` URL"),
]
HadoopUrl = Annotated[
    str,
    _require(
        r"file:///.*|(?!file:)[a-z][a-z0-9]*://\S*[^\s/]/*",
        "a folder as a URL, for example file:///var/lib/databus/lake or s3a://bucket/lake",
    ),
    AfterValidator(_require_no_password),
    Field(title="URL of a Hadoop file system"),
]


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
