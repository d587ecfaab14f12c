"""Templates of topic names."""

import re
from string import Formatter
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from databus_core.names import kafka_name

_FIELDS = {"name", "schema", "table"}


def _require_valid(template: str) -> str:
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"only {{name}}, {{schema}} and {{table}} can be used: {error}") from error
    for literal, field, spec, conversion in parts:
        if field is not None and (field not in _FIELDS or spec or conversion):
            raise ValueError(f"only {{name}}, {{schema}} and {{table}} can be used, not {{{field}}}")
        if illegal := [c for c in literal if kafka_name(c) != c]:
            raise ValueError(f"Kafka allows only letters, digits, '.', '_' and '-' in topic names, not {illegal[0]!r}")
    return template


TopicTemplate = Annotated[str, StringConstraints(min_length=1), AfterValidator(_require_valid)]


def separates_names(template: str) -> bool:
    """Return whether a template has `.` or `_` between {schema} and {table}, so that escaped names stay different."""
    between = re.search(r"{schema}(.*?){table}|{table}(.*?){schema}", template)
    return between is None or bool(set("._") & set(between[1] or between[2]))
