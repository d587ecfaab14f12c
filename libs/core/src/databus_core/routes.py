"""What the rules of output `default` say about the topics and the rows of tables. The lake follows these rules.

Publisher and sink must have the same rules. Otherwise the sink would miss topics that it does not expect, or mix rows
that were published with other columns or values.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from databus_core.settings.rules import DEFAULT_OUTPUT, Rule, default_rule

_MATCH = {"match", "exclude", "drop"}
_PUBLISHED = {"format", "options", "topic", "escape_names", "columns", "where", "mask", "hash", "truncate", "rename"}


def described(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Describe rules, for JSON. `rules_of` reads it."""
    return [
        _dump(rule, _MATCH if rule.drop else _MATCH | _PUBLISHED) for rule in rules if rule.output == DEFAULT_OUTPUT
    ]


def rules_of(description: Sequence[dict[str, Any]]) -> list[Rule]:
    """Return the rules that were described, without what does not concern the lake."""
    return [Rule.model_validate(each) for each in description]


def fingerprint(rules: Sequence[Rule]) -> str:
    """Return a text that differs if the description differs."""
    return fingerprint_of(described(rules))


def fingerprint_of(description: Sequence[dict[str, Any]]) -> str:
    """Return the fingerprint of the rules that were described."""
    return hashlib.sha256(msgspec.json.encode(description, order="sorted")).hexdigest()[:16]


def published_as(rules: Sequence[Rule], schema: str, table: str) -> dict[str, Any] | None:
    """Describe to which topics and how a table's rows are published; None if they are not."""
    rule = default_rule(rules, schema, table)
    return _dump(rule, _PUBLISHED) if rule else None


def is_exact(rules: Sequence[Rule], schema: str, table: str) -> bool:
    """Return whether a table's values are published without loss, so not with the option `compat: strict`."""
    rule = default_rule(rules, schema, table)
    return rule is None or rule.options.get("compat") != "strict"


def _dump(rule: Rule, fields: set[str]) -> dict[str, Any]:
    dumped = rule.model_dump(mode="json", by_alias=True, include=fields, exclude_defaults=True)
    if options := dumped.get("options"):  # the login changes no record, and clients get this description
        dumped["options"] = {name: value for name, value in options.items() if not name.startswith("schema_registry")}
    return dumped
