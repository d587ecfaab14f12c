"""Errors of requests, and the RFC 9457 problem documents that report them.

Problem
├── UnknownDump          404  there is no such dump, or it was deleted
├── UnknownFile          404  the dump's manifest has no such file
├── UnknownLease         404  the lease does not exist or has expired
├── NotComplete          409  the dump cannot be read: it is not complete, or it is being deleted
├── InUse                409  the dump cannot be deleted now
├── UnknownTables        422  a requested pattern matches no table that is captured and published
├── UnknownCursor        422  the cursor of a list is not one of ours
├── IdempotencyKeyReused 422  the key was sent with another body
├── IdempotencyKeyInUse  409  the first request with this key is still being handled
├── Unauthorized         401  there is no valid API key
├── Forbidden            403  the API key has not the scope
├── TooManyRequests      429  the client sends more requests than it may
└── QueueFull            429  too many requests are waiting

Of databus_core.errors:
BackfillRefused         422  backfills were requested that are not possible
├── BackfillConflict     409  the state of a table or a backfill does not allow what was requested
└── UnknownBackfill      404  there is no such backfill

Any other DatabusError (of the database, Redis, Kafka or the storage, or PipelineNotStarted) is a 503, except
StorageFull, which is a 507. They have Retry-After unless they are fatal.
"""

from http import HTTPStatus
from math import ceil

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from databus_core.errors import (
    BackfillConflict,
    BackfillRefused,
    DatabusError,
    FatalError,
    RetryableError,
    UnknownBackfill,
)
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.runtime import Health

log = get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
#: seconds after which a client may repeat a request that was refused or failed for a passing reason
_RETRY_AFTER = "5"
#: status of each refusal of a request that concerns backfills
_REFUSALS: dict[type[BackfillRefused], HTTPStatus] = {
    BackfillRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    BackfillConflict: HTTPStatus.CONFLICT,
    UnknownBackfill: HTTPStatus.NOT_FOUND,
}


class Problem(DatabusError):
    """A request that cannot be served; the message becomes the document's `detail`."""

    status = HTTPStatus.BAD_REQUEST

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        return {}


class _Later(Problem):
    """A request that may be sent again later."""

    @property
    def headers(self) -> dict[str, str]:
        """When it may be sent again."""
        return {"Retry-After": _RETRY_AFTER}


class UnknownDump(Problem):
    """There is no such dump."""

    status = HTTPStatus.NOT_FOUND


class UnknownFile(Problem):
    """The dump has no such file."""

    status = HTTPStatus.NOT_FOUND


class UnknownLease(Problem):
    """There is no such lease, or it has expired."""

    status = HTTPStatus.NOT_FOUND


class NotComplete(Problem):
    """The dump cannot be read: it is not complete, or it is being deleted."""

    status = HTTPStatus.CONFLICT


class InUse(Problem):
    """The dump cannot be deleted now."""

    status = HTTPStatus.CONFLICT


class UnknownTables(Problem):
    """A requested pattern matches no table that is captured and published."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class UnknownCursor(Problem):
    """The cursor of a list is not one of ours."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class IdempotencyKeyReused(Problem):
    """The key was sent with another body."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class IdempotencyKeyInUse(_Later):
    """The first request with this key is still being handled."""

    status = HTTPStatus.CONFLICT


class QueueFull(_Later):
    """Too many requests are waiting."""

    status = HTTPStatus.TOO_MANY_REQUESTS


class Unauthorized(Problem):
    """There is no valid API key."""

    status = HTTPStatus.UNAUTHORIZED

    @property
    def headers(self) -> dict[str, str]:
        """How to log in."""
        return {"WWW-Authenticate": "Bearer"}


class Forbidden(Problem):
    """The API key has not the scope that the request needs; or a page of another site has sent it, without a key."""

    status = HTTPStatus.FORBIDDEN


class TooManyRequests(Problem):
    """The client sends more requests than it may."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, seconds: float) -> None:
        super().__init__("too many requests: wait for Retry-After seconds (dumps.requests_per_second)")
        self._seconds = seconds

    @property
    def headers(self) -> dict[str, str]:
        """When the next request may be sent."""
        return {"Retry-After": str(ceil(self._seconds))}


class StorageUnavailable(RetryableError):
    """The folder of the dumps cannot be read or changed."""

    dependency = "storage"


class StorageFull(RetryableError):
    """The volume of the dumps has not enough free space."""

    dependency = "storage"


class Document(msgspec.Struct, frozen=True):
    """RFC 9457 problem document."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


def install(app: FastAPI, health: Health) -> None:
    """Make `app` answer every error with a problem document. An unavailable dependency makes the service not ready."""

    @app.exception_handler(Problem)
    async def problem(_: Request, error: Problem) -> Response:
        return response(error)

    @app.exception_handler(BackfillRefused)
    async def refused(_: Request, error: BackfillRefused) -> Response:
        return _response(_REFUSALS[type(error)], str(error))

    @app.exception_handler(DatabusError)
    async def unavailable(_: Request, error: DatabusError) -> Response:
        full = isinstance(error, StorageFull)
        status = HTTPStatus.INSUFFICIENT_STORAGE if full else HTTPStatus.SERVICE_UNAVAILABLE
        if isinstance(error, RetryableError) and error.dependency:
            health.down(str(error))
            health.outages.lost(error)
        headers = {} if isinstance(error, FatalError) else {"Retry-After": _RETRY_AFTER}
        return _response(status, str(error), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        faults = (
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors()
        )
        return _response(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(faults))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return _response(
            HTTPStatus(error.status_code), f"{request.method} {request.url.path}: {error.detail}", error.headers
        )

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        failed, kind = f"{request.method} {request.url.path} failed", type(error).__name__
        log.error(LogEvent.REQUEST_FAILED, f"{failed} with an unknown error", cause=error, error=kind)
        return _response(HTTPStatus.INTERNAL_SERVER_ERROR, f"{failed}; see the log of dump-api")


def response(problem: Problem) -> Response:
    """Report a problem."""
    return _response(problem.status, str(problem), problem.headers)


def _response(status: HTTPStatus, detail: str, headers: object = None) -> Response:
    document = msgspec.json.encode(Document(status.phrase, status, detail))
    return Response(document, status, dict(headers or {}), MEDIA_TYPE)  # type: ignore[call-overload]
