"""The HTTP API."""

from http import HTTPStatus

from fastapi import FastAPI, HTTPException
from fastapi_offline import FastAPIOffline
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from databus_core.runtime import Health, health_routes
from databus_core.settings import Settings
from databus_dump_api import backfills, dump_routes, openapi, pipeline_routes, problems
from databus_dump_api.access import Access, require_protection
from databus_dump_api.dumps import DumpManager
from databus_dump_api.idempotency import IdempotentRequests
from databus_dump_api.page_routes import page_routes

_DESCRIPTION = """
Versioned snapshots of complete tables. A dump is immutable. Its manifest has its exact position in the binlog, and
the Kafka offsets from which to consume the changes after it.

1. `POST /v1/dumps` requests a dump; `GET` its `Location` until `state` is `complete`, `failed` or `cancelled`, or
   follow its `/events`.
2. Take a lease and renew it within `expires_in` seconds: a dump is never deleted while it has a lease. (A download has
   a lease of its own until it ends.)
3. Download the files of the manifest and compare their SHA-256 with the manifest's. They are JSON lines in the
   `databus` message format, compressed with zstd (`jsonl`), Parquet files, or records of a format of the publisher.
   Each of the dump's `formats` has all rows.
4. Consume Kafka from the manifest's `kafka_offsets`, and drop changes that are not after its `position`; if the dump is
   `chunked`, not after the `position` of the row's chunk.

A backfill loads the rows of a table into the topics of its changes. `POST /v1/backfills` requests one for each table;
`GET` it until `state` is `done`, `cancelled` or `failed`.

Errors are problem documents (RFC 9457).
"""


#: limit of the bytes of a request's body
_MAX_BODY = 2**20


def build(dumps: DumpManager, requests: IdempotentRequests, health: Health, settings: Settings) -> FastAPI:
    """Build the application. Raises InvalidSettings if it would be open to the network without permission."""
    require_protection(settings.dumps)
    app = FastAPIOffline(
        redoc_url=None,
        title="Databus dumps and backfills",
        version="1",
        description=_DESCRIPTION,
        routes=[*health_routes(health, "dump-api", settings.name), *page_routes()],
    )
    app.add_middleware(_with_limited_body)
    app.add_middleware(Access, settings=settings.dumps)
    problems.install(app, health)
    app.include_router(dump_routes.router(dumps, requests, settings.dumps.lease_ttl))
    app.include_router(backfills.router(requests, settings))
    app.include_router(pipeline_routes.router(settings, dumps))
    openapi.complete(app, has_keys=bool(settings.dumps.api_keys))
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
