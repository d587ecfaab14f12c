"""The part of docs/reference/rest.md that describes requests and their bodies, made from the OpenAPI document."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_dump_api import app
from databus_dump_api.dumps import DumpManager
from databus_dump_api.idempotency import IdempotentRequests
from reference.pages import Page, generated

_PROBLEM = "application/problem+json"


def page() -> Page:
    """Return the page with all requests, bodies and examples."""
    document = openapi()
    parts = [*_operations(document), "## Bodies\n", *_schemas(document["components"]["schemas"])]
    return generated("rest.md", "databus_dump_api", "\n".join(parts))


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document of dump-api."""
    nobody = Settings(name="shop")
    # No request is made, so neither dumps nor Redis are needed.
    return app.build(cast(DumpManager, None), cast(IdempotentRequests, None), Health(), nobody).openapi()


def _operations(document: dict[str, Any]) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"### {operation['summary']}\n"
            yield f"`{method.upper()} {path}`\n"
            yield f"{operation['description']}\n"
            rows = [*_parameters(operation), *_body(operation)]
            if rows:
                yield _table("in the request", "type", "meaning", rows=rows)
            yield _table("status", "body", rows=_answers(operation))


def _parameters(operation: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for each in operation.get("parameters", ()):
        meaning = each.get("description", each["schema"].get("description", ""))
        yield f"{each['in']} `{each['name']}`", _kind(each["schema"]).removesuffix(" or null"), meaning


def _body(operation: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"body, `{media}`", _kind(content["schema"]).removesuffix(" or null"), ""


def _answers(operation: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    problems = []
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if _PROBLEM in content:
            problems.append(status)
            continue
        kinds = [f"{_kind(each.get('schema', {}))} `{media}`".strip() for media, each in content.items()]
        yield status, " or ".join(kinds) or answer["description"]
    yield ", ".join(problems), f"{_link('Document')} `{_PROBLEM}`"


def _schemas(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        yield f"### {name}\n"
        yield f"{schema.get('description', '')}\n"
        if "enum" in schema:
            yield ", ".join(f"`{value}`" for value in schema["enum"]) + "\n"
        if fields := schema.get("properties"):
            rows = [(f"`{field}`", _kind(each), each.get("description", "")) for field, each in fields.items()]
            yield _table("field", "type", "meaning", rows=rows)
        for example in schema.get("examples", ()):
            yield f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```\n"


def _table(*head: str, rows: Any) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _kind(schema: dict[str, Any]) -> str:
    """Describe a schema in words; those with a name are links."""
    match schema:
        case {"$ref": reference}:
            kind = _link(reference.rpartition("/")[2])
        case {"anyOf": choices}:
            kind = " or ".join(_kind(each) for each in choices)
        case {"enum": values}:
            kind = ", ".join(f"`{value}`" for value in values)
        case {"type": "array", "items": items}:
            kind = f"list of {_kind(items)}"
        case {"type": "object", "additionalProperties": {**values}}:
            kind = f"object of {_kind(values)}"
        case {"itemSchema": item}:
            kind = _kind(item)
        case _:
            kind = schema.get("type", "")
    return kind


def _link(name: str) -> str:
    return f"[{name}](#{re.sub(r'[^a-z0-9-]', '', name.lower())})"
