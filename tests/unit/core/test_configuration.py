"""The models of the settings agree with the reference, the chart, and the compose file."""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.compose_file import compose_file
from databus_core.errors import InvalidSettings
from databus_core.settings import Settings, load
from databus_core.settings.rules import Condition, Rule
from reference import chart
from reference import settings as reference

_ROOT = Path(__file__).parents[3]
_CHART = _ROOT / "charts" / "databus"
_SCHEMA: dict[str, Any] = json.loads((_CHART / "values.schema.json").read_text())

_SETTINGS = {setting.key: setting.field for setting in reference.settings_of(Settings)}
_RULE = {setting.key: setting.field for setting in reference.settings_of(Rule)}
_CONDITION = {setting.key: setting.field for setting in reference.settings_of(Condition)}

_OAUTH = {"token_url": "https://idp.example/token", "client_id": "databus"}
#: a minimal valid configuration, with everything that a tested setting requires
_BASE = {
    "name": "shop",
    "kafka": {"security_protocol": "SASL_SSL", "sasl": {"mechanism": "OAUTHBEARER", "oauth": _OAUTH}},
}

#: kind of setting → valid and invalid values
_SAMPLES: dict[str, list[Any]] = {
    "size": [1, "256MiB", "1 KiB", "8B", 0, -1, "8MB", "MiB", "1.5GiB"],
    "duration": [1, 0.5, "500ms", "1.5s", "90 m", "6h", "1d", 0, -1, "5w", "s"],
    "integer": [-2, -1, 0, 1, 2**32 - 1],
    "name": ["shop", "Shop_1-b", "-a", "", "a.b", "a" * 63, "a" * 64],
    "position": ["latest", "earliest", "b.000001:4", "gtid:0-1-2", "dump:d", "first", "b:4", "gtid:", "dump:"],
    "URL": ["http://a", "https://a:1/b", "a", "ftp://a"],
    "list of `host:port`": [["k:1"], ["[::1]:9092"], ["k"], ["k:"], [":1"], ["a b:1"], ["k:123456"]],
    "list of `schema.table` patterns": [["a.b"], ["*.*"], ["a?.b*"], ["a"], ["a.b.c"], [".b"], ["a."]],
}


def in_chart(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List the settings in an object of the chart's schema, as `settings_of` lists those in a model."""
    for name, each in schema["properties"].items():
        part = resolved(each)
        # A section that may be left out is a setting itself, in addition to its own settings.
        if "properties" not in part or name in ("tls", "sasl", "oauth", "columns"):
            yield f"{prefix}{name}", part
        if "properties" in part:
            yield from in_chart(part, f"{prefix}{name}.")


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").removeprefix("#/definitions/")
    return _SCHEMA["definitions"][name] if name else schema


_CHART_SETTINGS = dict(in_chart(_SCHEMA["definitions"]["config"]))
_CHART_RULE = dict(in_chart(_SCHEMA["definitions"]["rule"]))
_CHART_CONDITION = dict(in_chart(_CHART_RULE["where"]["items"]))


def kind_of(key: str) -> str:
    return reference.kind_of(_SETTINGS[key].annotation, _SETTINGS[key].title)


@pytest.mark.parametrize(
    ("path", "text"), [*reference.pages(), chart.page()], ids=lambda value: getattr(value, "name", "")
)
def test_the_reference_is_generated_from_the_models(path: Path, text: str) -> None:
    assert path.read_text() == text, "run `make docs`"


def test_every_setting_is_described_in_a_sentence() -> None:
    for key, field in (_SETTINGS | _RULE | _CONDITION).items():
        assert re.fullmatch(r"[A-Z`].*\.", field.description or ""), key


def test_the_reference_links_settings_to_sections_that_exist() -> None:
    assert reference.LINKS.keys() <= _SETTINGS.keys() | _RULE.keys()
    tables = _ROOT / "docs" / "reference"
    pages = {"output": "routes.md"}  # where a link without a page leads, if not to configuration.md
    for key, link in reference.LINKS.items():
        [(page, section)] = re.findall(r"\(([^)#]*)#?(.*)\)", link)
        text = (tables / (page or pages.get(key, "configuration.md"))).read_text()
        headings = {
            re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in re.findall("^#+ (.*)", text, re.M)
        }
        assert not section or section in headings, key


def test_the_chart_accepts_every_setting_that_it_neither_sets_itself_nor_excludes() -> None:
    assert _CHART_SETTINGS.keys() == _SETTINGS.keys() - chart.NOT_IN_CHART
    assert _CHART_RULE.keys() == _RULE.keys()
    assert _CHART_CONDITION.keys() == _CONDITION.keys()


@pytest.mark.parametrize("service", ["reader", "publisher", "dump-api", "spark-sink"])
def test_the_chart_gives_each_service_the_sections_that_it_reads(service: str) -> None:
    template = (_CHART / "templates" / "_config.tpl").read_text()
    read = yaml.safe_load(template.split('define "databus.read" -}}')[1].split("{{- end")[0])[service]
    code = "".join(file.read_text() for file in (_ROOT / "services" / service / "src").rglob("*.py"))
    sections = set(re.findall(r"settings\.(\w+)", code)) & Settings.model_fields.keys()
    assert sections <= {*read["all"], *read.get("only", ()), *read.get("without", ())}
    keys = {f"{section}.{key}" for section, keys in (read["only"] | read.get("without", {})).items() for key in keys}
    assert all(any(key.startswith(each) for key in _SETTINGS) for each in keys)


@pytest.mark.parametrize("key", [key for key in _CHART_SETTINGS if kind_of(key) in _SAMPLES])
def test_the_chart_accepts_the_values_that_the_models_accept(key: str, tmp_path: Path) -> None:
    for value in _SAMPLES[kind_of(key)]:
        assert accepts(_CHART_SETTINGS[key], value) is valid(tmp_path, key, value), value


def accepts(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether a JSON schema accepts a value, judged by the keywords that matter for `_SAMPLES`."""
    if "anyOf" in schema:
        return any(accepts(each, value) for each in schema["anyOf"])
    match schema["type"], value:
        case "array", list():
            return all(accepts(resolved(schema["items"]), each) for each in value)
        case "string", str():
            return re.search(schema.get("pattern", ""), value) is not None
        case ("integer", int()) | ("number", int() | float()):
            above = value > schema.get("exclusiveMinimum", value - 1)
            return above and schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return False


def valid(folder: Path, key: str, value: Any) -> bool:
    settings: dict[str, Any] = copy.deepcopy(_BASE)
    *sections, name = key.split(".")
    section = settings
    for part in sections:
        section = section.setdefault(part, {})
    section[name] = value
    try:
        loaded(folder, settings)
    except InvalidSettings:
        return False
    return True


def loaded(folder: Path, settings: object) -> Settings:
    (folder / "databus.yaml").write_text(settings if isinstance(settings, str) else yaml.safe_dump(settings))
    return load(folder / "databus.yaml")


@pytest.mark.parametrize(
    "file", ["values.yaml", "ci/full-values.yaml", "ci/spark-client-values.yaml", "ci/spark-operator-values.yaml"]
)
def test_the_charts_values_are_valid_settings(file: str, tmp_path: Path) -> None:
    config = yaml.safe_load((_CHART / file).read_text())["config"]
    for section in ("source", "redis", "kafka"):
        config[section].pop("tls", None)  # the files of `tls` are in the pod only
    if sasl := config["kafka"].get("sasl"):
        sasl["password"] = "from a Secret"
    config.setdefault("publisher", {})["salt"] = "from a Secret"
    assert loaded(tmp_path, config).name == config["name"]


def test_the_compose_file_has_valid_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compose = compose_file()
    (tmp_path / "password").write_text("secret")
    for service in compose["services"].values():
        for variable, value in service.get("environment", {}).items():
            monkeypatch.setenv(variable, str(value))
    text = compose["configs"]["databus"]["content"].replace("/run/secrets/database", str(tmp_path / "password"))
    assert loaded(tmp_path, text).name == "shop"
