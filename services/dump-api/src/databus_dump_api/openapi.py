"""The OpenAPI document: what FastAPI does not derive from the routes."""

from typing import Any

import msgspec
from fastapi import FastAPI

from databus_core.backfill_status import BackfillList, BackfillStatus
from databus_core.manifest import DumpEvent, DumpLease, DumpList
from databus_core.pipeline_description import PipelineDescription
from databus_core.pipeline_status import PipelineStatus
from databus_dump_api.access import scope_of
from databus_dump_api.bodies import answers
from databus_dump_api.examples import EXAMPLES
from databus_dump_api.field_comments import comments, structs_in
from databus_dump_api.overview import Overview
from databus_dump_api.problems import Document

_KEY = "apiKey"
_STRUCTS = (
    DumpList,
    DumpEvent,
    DumpLease,
    BackfillList,
    BackfillStatus,
    PipelineDescription,
    PipelineStatus,
    Overview,
    Document,
)


def complete(app: FastAPI, *, has_keys: bool) -> None:
    """Add the schemas of msgspec bodies, of which FastAPI knows nothing, and what all routes under `/v1` have."""
    document = app.openapi()
    components = document.setdefault("components", {})
    _, structs = msgspec.json.schema_components(_STRUCTS, ref_template="#/components/schemas/{name}")
    for struct in structs_in(*_STRUCTS):
        schema = structs[struct.__name__]
        for field, comment in comments(struct).items():
            schema["properties"][field]["description"] = comment
        if example := EXAMPLES.get(struct.__name__):
            schema["examples"] = [msgspec.to_builtins(example, str_keys=True)]
    schemas = components.setdefault("schemas", {})
    for theirs in "HTTPValidationError", "ValidationError":  # FastAPI's answers; ours are problem documents
        schemas.pop(theirs, None)
    schemas.update(structs)
    components["securitySchemes"] = {
        _KEY: {"type": "http", "scheme": "bearer", "description": "A key of `dumps.api_keys`, if there are any"}
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _add_access(path, method, operation, has_keys)


def _add_access(path: str, method: str, operation: dict[str, Any], has_keys: bool) -> None:
    scope = scope_of(method.upper(), path)
    operation["security"] = [{_KEY: [scope]}] if has_keys else [{_KEY: [scope]}, {}]
    operation["description"] += f"\n\nAPI keys need the scope `{scope}`."
    if "application/json" in operation["responses"].get("422", {}).get("content", ()):
        del operation["responses"]["422"]  # FastAPI adds it to every route with parameters
    errors = [401, 403, 429]
    if body := operation.get("requestBody"):
        body["required"] = True  # a request without one has no Content-Type either
        errors += [400, 413]  # the body is not text, or too long
    for status, answer in answers({}, *errors).items():
        operation["responses"][str(status)] = answer
    operation["responses"] = dict(sorted(operation["responses"].items()))
