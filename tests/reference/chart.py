"""values.schema.json of the chart: its own values from chart.yaml, `config` from the models of the settings."""

import json
import warnings
from pathlib import Path
from typing import Any

import yaml
from pydantic.json_schema import PydanticJsonSchemaWarning

from databus_core.settings import Settings, environment
from databus_messages import formats
from reference.pages import Page

_FILE = Path(__file__).parents[2] / "charts" / "databus" / "values.schema.json"

#: settings that the chart makes or that come from Secrets; `dumps.storage` and `spark.lake` may replace the chart's own
NOT_IN_CHART = {
    *(f"{section}.listen" for section in ("reader", "publisher", "dumps", "spark")),
    "source.password",  # see sourcePassword
    "source.password_file",
    "redis.password",  # see redisPassword
    "redis.password_file",
    "redis.tls.key_password",  # see redisTls
    "kafka.sasl.password",  # see kafkaPassword
    "kafka.sasl.password_file",
    "kafka.sasl.oauth.client_secret",
    "kafka.sasl.oauth.client_secret_file",
    "kafka.tls.key_password",  # see kafkaTls
    "publisher.salt",  # see env
    "publisher.salt_file",
    "dumps.api_key",  # see dumpApiKey
    "dumps.api_key_file",
    "spark.jars",  # in the image
}
#: title of a kind of setting → its definition in chart.yaml
_KINDS = {
    "name": "name",
    "size": "size",
    "position": "position",
    "URL": "url",
    "`host:port`": "address",
    "`schema.table` pattern": "pattern",
    "`file:///` or `s3://` URL": "bucket",
    "URL of a Hadoop file system": "lake",
}
#: settings whose JSON schema does not describe what is accepted
_OTHER = {
    "publisher.topic_settings": {"type": "object", "additionalProperties": {"$ref": "#/definitions/property"}},
    "spark.conf": {
        "type": "object",
        "additionalProperties": {"$ref": "#/definitions/property"},
        "propertyNames": {"pattern": r"^spark\.\S+$"},
    },
    "spark.master": {"$ref": "#/definitions/master"},
    "dumps.api_keys.sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "publisher.options": {"type": "object"},
}


def _needs(key: str, *values: str, then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {key: {"enum": values}}, "required": [key]}, "then": then}


def _one_of(*keys: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [key]} for key in keys]}


#: path of a section → what its keys require of each other
_TOGETHER: dict[str, dict[str, Any]] = {
    "kafka": _needs("security_protocol", "SASL_SSL", "SASL_PLAINTEXT", then={"required": ["sasl"]}),
    "kafka.sasl": _needs("mechanism", "OAUTHBEARER", then={"required": ["oauth"]})
    | {"else": {"required": ["username"]}},
    "doubt": _needs("all", "heal", then={"properties": {"heal": {"const": "auto"}}}),
    "dumps.schedules": _one_of("every", "cron"),
    "dumps.api_keys": _one_of("sha256", "key_file"),
    "rule.columns": _one_of("include", "exclude"),
    "rule.where": _one_of("equals", "in", "not_in", "is_null"),
}


def page() -> Page:
    """Return the schema, as JSON that Helm reads."""
    document = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    definitions = document["definitions"]
    definitions["env"] = {"type": "array", "items": _variable()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)  # of defaults, which are not used
        settings = Settings.model_json_schema()
    models = settings["$defs"]
    definitions["config"] = _section(settings, models, "") | {
        "description": "databus.yaml without the settings that the chart makes: listen, storage, jars and passwords"
    }
    del definitions["config"]["required"]  # a pipeline may replace a part
    definitions["rule"] = _section(models["Rule"], models, "rule")
    for name in formats.known():
        definitions[f"options of {name}"] = _options(name)
    publisher = definitions["config"]["properties"]["publisher"]
    checked = _needs("oversize", "claim_check", then={"required": ["claim_checks"]})
    publisher["allOf"] = [*_options_of_formats(), {"if": {"not": {"required": ["format"]}}, "then": _with("databus")}]
    publisher["allOf"].append(checked)
    definitions["rule"]["allOf"] = _options_of_formats()
    for section in (publisher, definitions["rule"]):
        section["properties"]["format"] = {"enum": formats.known()}
    for name, part in document.pop("parts").items():
        whole = definitions[part["of"]]
        kept = {key: value for key, value in whole["properties"].items() if key not in part["without"]}
        definitions[name] = whole | {"properties": kept}
    document |= definitions.pop("values")
    document["properties"]["config"] = _complete(definitions["config"])
    return Page(_FILE, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _complete(config: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the release's `config`, which may not leave out what only the user knows."""
    source = config["properties"]["source"] | {"required": ["hosts", "user"]}
    properties = config["properties"] | {"source": source}
    return config | {"properties": properties, "required": ["name", "source", "redis", "kafka"]}


def _section(model: dict[str, Any], models: dict[str, Any], path: str) -> dict[str, Any]:
    properties = {
        key: _setting(field, models, f"{path}.{key}".lstrip("."))
        for key, field in model["properties"].items()
        if f"{path}.{key}".lstrip(".") not in NOT_IN_CHART
    }
    section = {"type": "object", "additionalProperties": False, "properties": properties}
    if required := model.get("required"):
        section["required"] = required
    return section | _TOGETHER.get(path, {})


def _setting(field: dict[str, Any], models: dict[str, Any], path: str) -> dict[str, Any]:
    """Return what a setting accepts. Helm removes values that are null, so null is left out."""
    choices = [each for each in field.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        field = {**field, **choices[0]}
    title = field.get("title")
    if path in _OTHER:
        found = _OTHER[path]
    elif title == "duration":
        found = {"$ref": f"#/definitions/{'interval' if 'ge' in field else 'duration'}"}
    elif title in _KINDS:
        found = {"$ref": f"#/definitions/{_KINDS[title]}"}
    elif "$ref" in field:
        found = _model(field["$ref"].rpartition("/")[2], models, path)
    elif len(choices) > 1:
        found = {"anyOf": choices}
    else:
        found = {key: field[key] for key in _KEYWORDS if key in field}
        for key in ("items", "additionalProperties"):
            if isinstance(field.get(key), dict):
                found[key] = _setting(field[key], models, path)
    return found


def _model(name: str, models: dict[str, Any], path: str) -> dict[str, Any]:
    if name == "Rule":
        return {"$ref": "#/definitions/rule"}
    return {"enum": models[name]["enum"]} if "enum" in models[name] else _section(models[name], models, path)


_KEYWORDS = ("type", "enum", "pattern", "minimum", "maximum", "exclusiveMaximum", "minLength", "minItems")


def _options(name: str) -> dict[str, Any]:
    """Return the schema of a format's options."""
    schema = formats.find(name).options_type.model_json_schema()
    return _section(schema | {"properties": schema.get("properties", {})}, {}, "options")


def _options_of_formats() -> list[dict[str, Any]]:
    return [_needs("format", name, then=_with(name)) for name in formats.known()]


def _with(name: str) -> dict[str, Any]:
    return {"properties": {"options": {"$ref": f"#/definitions/options of {name}"}}}


def _variable() -> dict[str, Any]:
    """Return the schema of an environment variable. One of ours must override a setting."""
    ours = sorted(f"{name}(__.+)?" if mapping else name for name, mapping in environment.variables())
    name = {"anyOf": [{"pattern": f"^({'|'.join(ours)})$"}, {"not": {"pattern": "^DATABUS_"}}]}
    return {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": "^[^=]+$", **name}, "value": {"type": "string"}},
    }
