"""The REST interface."""

from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from databus.manifest import DumpLease, DumpList, Manifest
from databus.runtime import Health, health_routes
from databus.table_filter import TablePattern
from databus_dump_api import problems
from databus_dump_api.download import Download
from databus_dump_api.dumps import Dumps

_DESCRIPTION = """
Versioned snapshots of whole tables. Each one is immutable, tied to an exact position of the database's log and to the
Kafka offsets from which to go on.

1. `POST /v1/dumps` requests a dump; `GET` its `Location` until `state` is `complete` or `failed`.
2. Take a lease and renew it in less than `expires_in` seconds: a dump is never deleted while it has a lease. (A single
   download holds one by itself for as long as bytes flow.)
3. Download the files of the manifest and compare their SHA-256. They are JSON lines in the `databus` message format,
   compressed with zstd.
4. Read Kafka from the manifest's `kafka_offsets`, and drop what is not after its `position`.

Errors are problem documents (RFC 9457).
"""


class DumpRequest(BaseModel):
    """What to dump."""

    model_config = ConfigDict(extra="forbid")

    tables: Annotated[list[TablePattern], Field(min_length=1)] | None = Field(
        default=None,
        description="`schema.table` patterns with `*` and `?`; without them everything that is captured",
        examples=[["shop.*"], ["shop.orders", "shop.customers"]],
    )


DumpId = Annotated[str, Path(description="id of a dump", examples=["20261121T115346Z-3f2a"])]


def build(dumps: Dumps, health: Health, lease_ttl: float) -> FastAPI:
    """Make the application."""
    app = FastAPI(title="Databus dumps", version="1", description=_DESCRIPTION, routes=health_routes(health))
    problems.install(app)

    @app.post(
        "/v1/dumps",
        status_code=HTTPStatus.ACCEPTED,
        summary="Request a dump",
        responses=_answers({202: Manifest}, 422, 503),
    )
    async def request_dump(request: DumpRequest | None = None) -> Response:
        """Take a snapshot of the tables as they are now. Dumps are taken one at a time, in the order of requests."""
        manifest = await dumps.request(request.tables if request else None)
        return _json(manifest, HTTPStatus.ACCEPTED, {"Location": f"/v1/dumps/{manifest.id}"})

    @app.get("/v1/dumps", summary="List all dumps", responses=_answers({200: DumpList}))
    async def list_dumps() -> Response:
        """List the manifests of all dumps, the newest first, in whatever state."""
        return _json(DumpList(dumps.newest_first()))

    @app.get("/v1/dumps/{dump}", summary="Show a dump", responses=_answers({200: Manifest}, 404))
    async def show_dump(dump: DumpId) -> Response:
        """Give a dump's manifest: state, position, Kafka offsets, schemas and files."""
        return _json(dumps.get(dump))

    @app.delete(
        "/v1/dumps/{dump}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="Delete a dump",
        responses=_answers({}, 404, 409, 503),
    )
    async def delete_dump(dump: DumpId) -> Response:
        """Delete a dump and its files, unless somebody reads it or it is still being taken."""
        await dumps.delete(dump)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    @app.get(
        "/v1/dumps/{dump}/files/{name}",
        summary="Download a file",
        response_class=Response,
        responses=_answers({}, 404, 409, 503)
        | {200: {"content": {"application/zstd": {}}, "description": "The file; `ETag` is its SHA-256"}},
    )
    async def download(dump: DumpId, name: str) -> Response:
        """Stream a file of a complete dump, or a `Range` of it, under a lease of its own."""
        path, file = dumps.file(dump, name)
        return Download(dumps, dump, path, file, lease_ttl)

    @app.post(
        "/v1/dumps/{dump}/leases",
        status_code=HTTPStatus.CREATED,
        summary="Take a lease",
        responses=_answers({201: DumpLease}, 404, 409, 503),
    )
    async def take_lease(dump: DumpId) -> Response:
        """Keep a complete dump from being deleted."""
        lease = await dumps.lease(dump)
        location = f"/v1/dumps/{dump}/leases/{lease}"
        return _json(DumpLease(lease, lease_ttl), HTTPStatus.CREATED, {"Location": location})

    @app.put("/v1/dumps/{dump}/leases/{lease}", summary="Renew a lease", responses=_answers({200: DumpLease}, 404, 503))
    async def renew_lease(dump: DumpId, lease: str) -> Response:
        """Begin a lease's time anew."""
        await dumps.renew(dump, lease)
        return _json(DumpLease(lease, lease_ttl))

    @app.delete(
        "/v1/dumps/{dump}/leases/{lease}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="End a lease",
        responses=_answers({}, 404, 503),
    )
    async def release_lease(dump: DumpId, lease: str) -> Response:
        """Say that the dump is not needed any longer."""
        await dumps.release(dump, lease)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    _describe_structs(app)
    return app


def _json(value: msgspec.Struct, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def _answers(bodies: dict[int, type[msgspec.Struct]], *refusals: int) -> dict[int | str, dict[str, Any]]:
    """Describe the answers of a route for the OpenAPI page."""
    answers: dict[int | str, dict[str, Any]] = {}
    for status, body in bodies.items():
        answers[status] = _answer(body, "application/json")
    for status in refusals:
        answers[status] = _answer(problems.Document, problems.MEDIA_TYPE)
    return answers


def _answer(body: type[msgspec.Struct], media_type: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    return {"description": (body.__doc__ or "").strip(), "content": {media_type: {"schema": schema}}}


def _describe_structs(app: FastAPI) -> None:
    """Add to the OpenAPI document the bodies that FastAPI knows nothing of."""
    _, structs = msgspec.json.schema_components(
        (DumpList, DumpLease, problems.Document), ref_template="#/components/schemas/{name}"
    )
    components = app.openapi().setdefault("components", {})
    components.setdefault("schemas", {}).update(structs)
