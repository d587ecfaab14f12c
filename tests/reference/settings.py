"""The tables of settings in docs/reference, made from the models of databus_core.settings."""

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from databus_core.settings import Settings
from databus_core.settings.rules import Rule
from reference.pages import Page, generated

#: for a setting or a key of a rule, the page or section that describes it in detail
LINKS = {
    "reader.engine": "[the second engine](#the-second-engine)",
    "source.hosts": "[failover](../guide/failover.md)",
    "reader.start": "[where a pipeline begins](#where-a-pipeline-begins)",
    "reader.election.by": "[replicas](../guide/deploy.md#replicas)",
    "publisher.election.by": "[replicas](../guide/deploy.md#replicas)",
    "publisher.format": "[formats](../guide/formats.md)",
    "publisher.escape_names": "[topic names](publisher.md#topic-names)",
    "publisher.delivery": "[delivery](publisher.md#delivery)",
    "publisher.publish_partial": "[partial rows](publisher.md#partial-rows)",
    "publisher.partition_by": "[partitions](publisher.md#partitions)",
    "publisher.partitions": "[partitions](publisher.md#partitions)",
    "publisher.routes": "[routes](routes.md)",
    "publisher.transaction_timeout": "[long transactions](publisher.md#long-transactions)",
    "publisher.oversize": "[records that do not fit](publisher.md#records-that-do-not-fit)",
    "dumps.schedules": "[schedules](dumps.md#schedules)",
    "dumps.api_keys": "[who may send requests](dumps.md#who-may-send-requests)",
    "spark.lake": "[object stores](../guide/cluster.md)",
    "spark.master": "[clusters](../guide/cluster.md)",
    "output": "[dumps and the lake](#dumps-and-the-lake)",
    "escape_names": "[topic names](publisher.md#topic-names)",
    "partition_by": "[partitions](publisher.md#partitions)",
}
_UNITS = {
    "size": {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10},
    "duration": {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001},
}
_KINDS: dict[object, str] = {bool: "`true` or `false`", dict: "mapping", int: "integer", Path: "path"}


class Setting(NamedTuple):
    """A setting of the configuration file, or a key of a mapping in it."""

    #: the names of the sections that contain it, then its own name: `source.tls.ca_file`
    key: str
    #: the model's field
    field: FieldInfo


def settings_of(model: type[BaseModel], prefix: str = "") -> Iterator[Setting]:
    """Yield the settings of a model and its sections; a section that may be left out also counts as a setting."""
    for name, field in model.model_fields.items():
        key, optional = f"{prefix}{field.alias or name}", without_none(field.annotation)
        section = optional if isinstance(optional, type) and issubclass(optional, BaseModel) else None
        if section is None or section is not field.annotation:
            yield Setting(key, field)
        if section:
            yield from settings_of(section, f"{key}.")


def without_none(annotation: Any) -> Any:
    """Return an annotation without `| None`, if that leaves a single type; otherwise the annotation itself."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return kinds[0] if len(kinds) == 1 else annotation


def kind_of(annotation: Any, title: str | None = None) -> str:
    """Describe the values that a setting accepts: its title if it has one, else its type."""
    annotation = without_none(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if title:
        kind = title
    elif origin is Annotated:
        titles = [each.title for each in arguments[1:] if isinstance(each, FieldInfo) and each.title]
        kind = kind_of(arguments[0], *titles)
    elif origin is Literal:
        kind = ", ".join(f"`{choice}`" for choice in arguments)
    elif origin in (list, tuple):
        item = kind_of(arguments[0])
        kind = f"list of {item}" if item.endswith("`") else f"list of {item}s"
    elif isinstance(annotation, type) and issubclass(annotation, StrEnum):
        kind = ", ".join(f"`{choice}`" for choice in annotation)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        kind = "mapping"
    else:
        kind = _KINDS.get(origin or annotation, "text")
    return kind


def pages() -> list[Page]:
    """Return the pages with tables of settings."""
    rules = _table(setting for setting in settings_of(Rule) if "." not in setting.key)
    return [
        generated("configuration.md", "databus/settings", "\n".join(_sections())),
        generated("routes.md", "databus/settings", rules),
    ]


def _sections() -> Iterator[str]:
    settings = list(settings_of(Settings))
    yield _table(setting for setting in settings if "." not in setting.key)
    for name, field in Settings.model_fields.items():
        if found := [setting for setting in settings if setting.key.startswith(f"{name}.")]:
            yield f"### {name}\n\n{getattr(field.annotation, '__doc__', '')}\n\n{_table(found)}"


def _table(settings: Iterable[Setting]) -> str:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, field in settings:
        meaning = " ".join((field.description or "").split()) + (f" See {LINKS[key]}." if key in LINKS else "")
        lines.append(f"| `{key}` | {kind_of(field.annotation, field.title)} | {_default(field)} | {meaning} |")
    return "\n".join(lines) + "\n"


def _default(field: FieldInfo) -> str:
    value = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    if field.is_required():
        return "required"
    if value in (None, "", ()) or "by default" in (field.description or ""):
        return "–"
    if field.title in _UNITS and value:
        # in the largest unit in which it is a whole number from 2 to 1999: 60s, not 1m
        units = _UNITS[field.title].items()
        return next(f"`{value / size:g}{unit}`" for unit, size in units if value / size in range(2, 2000))
    return f"`{json.dumps(value) if isinstance(value, list | dict | bool) else value}`"
