"""The routes of dumps, their files and their leases."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from databus_core.manifest import DumpEvent, DumpLease, DumpList, Manifest, Mode, State
from databus_core.settings import TablePattern
from databus_dump_api import events, server_sent
from databus_dump_api.bodies import MAX_PATTERNS, IdempotencyKey, answers, json_response, require_json, schema_of
from databus_dump_api.download import MEDIA_TYPES, Download
from databus_dump_api.dumps import DumpManager
from databus_dump_api.idempotency import IdempotentRequests
from databus_dump_api.listing import page

_MAX_PAGE = 1000


class DumpRequest(BaseModel):
    """Which tables to dump."""

    model_config = ConfigDict(extra="forbid")

    tables: Annotated[list[TablePattern], Field(min_length=1, max_length=MAX_PATTERNS)] | None = Field(
        default=None,
        description="`schema.table` patterns with `*` and `?`; by default all captured and published tables",
        examples=[["shop.*"], ["shop.orders", "shop.customers"]],
    )
    mode: Mode = Field(
        default=Mode.VIEW,
        description="`view`: all rows as of one position; `chunked`: parts of large tables as of positions of their "
        "own, over short read views; such a dump goes on after a crash",
    )


class ListQuery(BaseModel):
    """Filters and pages of the list of dumps."""

    model_config = ConfigDict(extra="forbid")

    state: list[State] = Field(default=[], description="only dumps in this state; may be repeated")
    table: TablePattern | None = Field(
        default=None, description="only dumps with a table that matches this `schema.table` pattern"
    )
    limit: Annotated[int, Field(ge=1, le=_MAX_PAGE)] | None = Field(
        default=None, description="at most so many dumps; by default all"
    )
    cursor: str | None = Field(default=None, description="`next` of the previous page")


DumpId = Annotated[str, Path(description="id of a dump", examples=["20261121T115346Z-3f2a"])]
LeaseId = Annotated[str, Path(description="id of a lease", examples=["9f86d081884c7d65"])]
FileName = Annotated[str, Path(description="name of a file", examples=["shop.orders.00001.jsonl.zst"])]


def router(dumps: DumpManager, requests: IdempotentRequests, lease_ttl: float) -> APIRouter:
    """Make the routes of a pipeline."""
    routes = APIRouter(prefix="/v1/dumps")

    @routes.post(
        "",
        status_code=HTTPStatus.ACCEPTED,
        summary="Request a dump",
        responses=answers({202: Manifest}, 404, 409, 415, 422, 503, 507),
        dependencies=[Depends(require_json)],
    )
    async def request_dump(
        http: Request, request: DumpRequest | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Request a snapshot of the tables. Each replica takes one dump at a time, in the order of requests.

        The body may be empty, but the request must have the header `Content-Type: application/json`. At most 10 dumps
        may be pending (429). With an `Idempotency-Key` that was sent before, the answer is the manifest of the dump
        that was requested then: 422 if the body was another one, 409 while that request is being handled, 404 if the
        dump was deleted.
        """
        asked = request or DumpRequest()

        async def create() -> list[str]:
            return [(await dumps.request(asked.tables, asked.mode)).id]

        body = ["dumps", asked.tables, asked.mode]
        (dump,) = await requests.once(idempotency_key, http.state.client, body, create)
        manifest = await dumps.with_progress(await dumps.get(dump))
        return json_response(manifest, HTTPStatus.ACCEPTED, {"Location": f"/v1/dumps/{dump}"})

    @routes.get("", summary="List dumps", responses=answers({200: DumpList}, 422, 503))
    @routes.head("", include_in_schema=False)
    async def list_dumps(query: Annotated[ListQuery, Query()]) -> Response:
        """List the manifests of dumps, the newest first. Of more than `limit`, `next` is the next `cursor`."""
        found = page(await dumps.newest_first(), query.state, query.table, query.limit, query.cursor)
        return json_response(DumpList([await dumps.with_progress(each) for each in found.dumps], found.next))

    @routes.get("/{dump}", summary="Show a dump", responses=answers({200: Manifest}, 404, 503))
    @routes.head("/{dump}", include_in_schema=False)
    async def show_dump(dump: DumpId) -> Response:
        """Show a dump's manifest: state, progress, position, Kafka offsets, tables and files."""
        return json_response(await dumps.with_progress(await dumps.get(dump)))

    @routes.get(
        "/{dump}/events",
        summary="Follow a dump",
        response_class=Response,
        responses=answers({}, 404, 503)
        | {
            200: {
                "content": {server_sent.MEDIA_TYPE: {"itemSchema": schema_of(DumpEvent)}},
                "description": "Server-sent events; the data of each is a DumpEvent",
            }
        },
    )
    async def follow_dump(dump: DumpId) -> Response:
        """Follow a dump until it has ended: an event `progress` at every change, at most one a second, then `end`."""
        await dumps.get(dump)
        return server_sent.respond(events.events(dumps, dump))

    @routes.post(
        "/{dump}/cancel",
        status_code=HTTPStatus.ACCEPTED,
        summary="Cancel a dump",
        responses=answers({202: Manifest}, 404, 409, 503, 507),
    )
    async def cancel_dump(dump: DumpId) -> Response:
        """Cancel a dump that is pending or running. Its files are removed.

        The database ends the read view when it notices that the connection is closed: within seconds, but later if the
        dump waits for a table that DDL has locked.

        A dump that is cancelled stays so: the answer to another request is the same.
        """
        return json_response(await dumps.cancel(dump), HTTPStatus.ACCEPTED)

    @routes.delete(
        "/{dump}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="Delete a dump",
        responses=answers({}, 404, 409, 503),
    )
    async def delete_dump(dump: DumpId) -> Response:
        """Delete a dump and its files, unless it is leased, pending or running."""
        await dumps.delete(dump)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    @routes.get(
        "/{dump}/files/{name}",
        summary="Download a file",
        response_class=Response,
        responses=answers({}, 404, 409, 503)
        | {
            status: {"content": {each: {} for each in MEDIA_TYPES.values()}, "description": description}
            for status, description in ((200, "The file; `ETag` is its SHA-256"), (206, "The requested `Range`"))
        },
    )
    @routes.head("/{dump}/files/{name}", include_in_schema=False)
    async def download(dump: DumpId, name: FileName) -> Response:
        """Stream a file of a complete dump, or a `Range` of it. The download has a lease of its own."""
        return Download(dumps, dump, await dumps.file(dump, name), lease_ttl)

    @routes.post(
        "/{dump}/leases",
        status_code=HTTPStatus.CREATED,
        summary="Take a lease",
        responses=answers({201: DumpLease}, 404, 409, 503),
    )
    async def take_lease(dump: DumpId) -> Response:
        """Take a lease of a complete dump: it is not deleted for `expires_in` seconds."""
        lease = await dumps.lease(dump)
        location = f"/v1/dumps/{dump}/leases/{lease}"
        return json_response(DumpLease(lease, lease_ttl), HTTPStatus.CREATED, {"Location": location})

    @routes.put("/{dump}/leases/{lease}", summary="Renew a lease", responses=answers({200: DumpLease}, 404, 503))
    async def renew_lease(dump: DumpId, lease: LeaseId) -> Response:
        """Extend a lease to `expires_in` seconds from now."""
        await dumps.renew(dump, lease)
        return json_response(DumpLease(lease, lease_ttl))

    @routes.delete(
        "/{dump}/leases/{lease}",
        status_code=HTTPStatus.NO_CONTENT,
        summary="Release a lease",
        responses=answers({}, 404, 503),
    )
    async def release_lease(dump: DumpId, lease: LeaseId) -> Response:
        """Release a lease, so that the dump can be deleted."""
        await dumps.release(dump, lease)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    return routes
