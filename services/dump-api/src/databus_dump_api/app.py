"""The HTTP API."""

from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import Depends, FastAPI, HTTPException, Path, Response
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from databus_core.backfill_status import BackfillList
from databus_core.manifest import DumpLease, DumpList, Manifest
from databus_core.pipeline_description import PipelineDescription, description_of
from databus_core.runtime import Health, health_routes
from databus_core.settings import Settings, TablePattern
from databus_dump_api import backfills, problems
from databus_dump_api.bodies import MAX_PATTERNS, answers, json_response, require_json
from databus_dump_api.download import MEDIA_TYPES, Download
from databus_dump_api.dumps import DumpManager

_DESCRIPTION = """
Versioned snapshots of complete tables. A dump is immutable. Its manifest has its exact position in the binlog, and
the Kafka offsets from which to consume the changes after it.

1. `POST /v1/dumps` requests a dump; `GET` its `Location` until `state` is `complete` or `failed`.
2. Take a lease and renew it within `expires_in` seconds: a dump is never deleted while it has a lease. (A download has
   a lease of its own until it ends.)
3. Download the files of the manifest and compare their SHA-256 with the manifest's. They are JSON lines in the
   `databus` message format, compressed with zstd (`jsonl`), or Parquet files with the same text in the table's columns
   (`parquet`). Each of the dump's `formats` has all rows.
4. Consume Kafka from the manifest's `kafka_offsets`, and drop changes that are not after its `position`.

A backfill loads the rows of a table into the topics of its changes. `POST /v1/backfills` requests one for each table;
`GET` it until `state` is `done`, `cancelled` or `failed`.

Errors are problem documents (RFC 9457).
"""


#: limit of the bytes of a request's body
_MAX_BODY = 2**20


class DumpRequest(BaseModel):
    """Which tables to dump."""

    model_config = ConfigDict(extra="forbid")

    tables: Annotated[list[TablePattern], Field(min_length=1, max_length=MAX_PATTERNS)] | None = Field(
        default=None,
        description="`schema.table` patterns with `*` and `?`; by default all captured and published tables",
        examples=[["shop.*"], ["shop.orders", "shop.customers"]],
    )


DumpId = Annotated[str, Path(description="id of a dump", examples=["20261121T115346Z-3f2a"])]


def build(dumps: DumpManager, health: Health, settings: Settings) -> FastAPI:
    """Build the application."""
    lease_ttl = settings.dumps.lease_ttl
    app = FastAPIOffline(
        redoc_url=None,
        title="Databus dumps and backfills",
        version="1",
        description=_DESCRIPTION,
        routes=health_routes(health),
    )
    app.add_middleware(_with_limited_body)
    problems.install(app, health)

    @app.post(
        "/v1/dumps",
        status_code=HTTPStatus.ACCEPTED,
        summary="Request a dump",
        responses=answers({202: Manifest}, 413, 415, 422, 429, 503, 507),
        dependencies=[Depends(require_json)],
    )
    async def request_dump(request: DumpRequest | None = None) -> Response:
        """Request a snapshot of the tables. Dumps are taken one at a time, in the order of requests.

        The body may be empty, but the request must have the header `Content-Type: application/json`.
        """
        manifest = await dumps.request(request.tables if request else None)
        return json_response(manifest, HTTPStatus.ACCEPTED, {"Location": f"/v1/dumps/{manifest.id}"})

    @app.get("/v1/dumps", summary="List all dumps", responses=answers({200: DumpList}))
    async def list_dumps() -> Response:
        """List the manifests of all dumps in any state, the newest first."""
        return json_response(DumpList(dumps.newest_first()))

    @app.get("/v1/dumps/{dump}", summary="Show a dump", responses=answers({200: Manifest}, 404))
    async def show_dump(dump: DumpId) -> Response:
        """Show a dump's manifest: state, position, Kafka offsets, tables and files."""
        return json_response(dumps.get(dump))

    @app.delete(
        "/v1/dumps/{dump}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="Delete a dump",
        responses=answers({}, 404, 409, 503),
    )
    async def delete_dump(dump: DumpId) -> Response:
        """Delete a dump and its files, unless it is leased, pending or being taken."""
        await dumps.delete(dump)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    @app.get(
        "/v1/dumps/{dump}/files/{name}",
        summary="Download a file",
        response_class=Response,
        responses=answers({}, 404, 409, 503)
        | {
            200: {
                "content": {each: {} for each in MEDIA_TYPES.values()},
                "description": "The file; `ETag` is its SHA-256",
            }
        },
    )
    @app.head("/v1/dumps/{dump}/files/{name}", include_in_schema=False)
    async def download(dump: DumpId, name: str) -> Response:
        """Stream a file of a complete dump, or a `Range` of it. The download has a lease of its own."""
        path, file = dumps.file(dump, name)
        return Download(dumps, dump, path, file, lease_ttl)

    @app.post(
        "/v1/dumps/{dump}/leases",
        status_code=HTTPStatus.CREATED,
        summary="Take a lease",
        responses=answers({201: DumpLease}, 404, 409, 503),
    )
    async def take_lease(dump: DumpId) -> Response:
        """Take a lease of a complete dump: it is not deleted for `expires_in` seconds."""
        lease = await dumps.lease(dump)
        location = f"/v1/dumps/{dump}/leases/{lease}"
        return json_response(DumpLease(lease, lease_ttl), HTTPStatus.CREATED, {"Location": location})

    @app.put("/v1/dumps/{dump}/leases/{lease}", summary="Renew a lease", responses=answers({200: DumpLease}, 404, 503))
    async def renew_lease(dump: DumpId, lease: str) -> Response:
        """Extend a lease to `expires_in` seconds from now."""
        await dumps.renew(dump, lease)
        return json_response(DumpLease(lease, lease_ttl))

    @app.delete(
        "/v1/dumps/{dump}/leases/{lease}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="Release a lease",
        responses=answers({}, 404, 503),
    )
    async def release_lease(dump: DumpId, lease: str) -> Response:
        """Release a lease, so that the dump can be deleted."""
        await dumps.release(dump, lease)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    @app.get("/v1/pipeline", summary="Show the pipeline", responses=answers({200: PipelineDescription}))
    async def show_pipeline() -> Response:
        """Show the pipeline's name, where Kafka is, and by which rules changes are published: what a client needs."""
        return json_response(description_of(settings))

    app.include_router(backfills.router(settings))
    _describe_structs(app)
    return app


def _with_limited_body(app: ASGIApp) -> ASGIApp:
    """Refuse requests whose body is longer than `_MAX_BODY`, without reading the rest."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > _MAX_BODY:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body may have at most {_MAX_BODY} bytes")
            return message

        await app(scope, counted, send)

    return limited


def _describe_structs(app: FastAPI) -> None:
    """Add the schemas of msgspec bodies to the OpenAPI document; FastAPI knows only pydantic's."""
    _, structs = msgspec.json.schema_components(
        (DumpList, DumpLease, BackfillList, PipelineDescription, problems.Document),
        ref_template="#/components/schemas/{name}",
    )
    components = app.openapi().setdefault("components", {})
    components.setdefault("schemas", {}).update(structs)
