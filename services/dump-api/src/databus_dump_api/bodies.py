"""What routes have in common: bodies in JSON, and how the OpenAPI document describes their answers."""

from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import Header, HTTPException, Response

from databus_dump_api import problems

#: limit of the patterns in a request
MAX_PATTERNS = 1000
#: header of requests that are done once (`idempotency`)
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="a request that is sent again with the same key and body within a day is done once",
        examples=["8e03978e-40d5-43dd-bc93-6894a57f9324"],
    ),
]


def require_json(content_type: Annotated[str, Header(include_in_schema=False)] = "") -> None:
    """Refuse what a browser would send to another site without asking that site first."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send it with Content-Type: application/json")


def json_response(
    value: msgspec.Struct, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    """Answer with a struct."""
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def answers(bodies: dict[int, type[msgspec.Struct]], *errors: int) -> dict[int | str, dict[str, Any]]:
    """Describe a route's responses for the OpenAPI document: bodies by status, and the statuses of its errors."""
    responses: dict[int | str, dict[str, Any]] = {}
    for status, body in bodies.items():
        responses[status] = _response(body, "application/json")
    for status in errors:
        responses[status] = _response(problems.Document, problems.MEDIA_TYPE)
    return responses


def schema_of(body: type[msgspec.Struct]) -> dict[str, str]:
    """Refer to the schema of a struct."""
    return {"$ref": f"#/components/schemas/{body.__name__}"}


def _response(body: type[msgspec.Struct], media_type: str) -> dict[str, Any]:
    return {"description": (body.__doc__ or "").strip(), "content": {media_type: {"schema": schema_of(body)}}}
