"""Find a format by name, and validate its options."""

from pydantic import ValidationError

from databus_core.errors import InvalidSettings
from databus_core.settings.rules import Rule
from databus_messages.formats import find
from databus_messages.outputs import OutputPlan


def output_plan(rule: Rule) -> OutputPlan:
    """Find the rule's format and validate its options. Raises InvalidSettings that names the wrong format or option."""
    kind = find(rule.format)
    try:
        return OutputPlan(rule, kind, kind.options_type.model_validate(rule.options))
    except ValidationError as error:
        [first, *_] = error.errors()
        option = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            names = ", ".join(kind.options_type.model_fields)
            known = f"it has {names}" if names else "it has none"
            raise InvalidSettings(f"format {rule.format} has no option {option}: {known}") from error
        raise InvalidSettings(f"option {option} of format {rule.format}: {first['msg'].lower()}") from error
