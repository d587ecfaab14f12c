"""What can be wrong with a request, told as RFC 9457 problem documents.

Problem
├── UnknownDump          404  there is no such dump (any more)
├── UnknownFile          404  the dump's manifest does not name such a file
├── UnknownLease         404  the lease was never given or has expired
├── NotComplete          409  the dump is not complete, so nothing of it can be read
├── InUse                409  the dump cannot be deleted now
└── UnknownTables        422  a wanted table does not exist or is not captured

A neighbour's DatabusError is a 503, with Retry-After unless it is fatal; so is NotBegun.
"""

from http import HTTPStatus

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from databus.errors import DatabusError, FatalError, RetryableError

MEDIA_TYPE = "application/problem+json"
#: seconds after which a request to a neighbour that is away may be sent again
_RETRY_AFTER = "5"


class Problem(DatabusError):
    """A request that cannot be served; the message is the document's detail."""

    status = HTTPStatus.BAD_REQUEST


class UnknownDump(Problem):
    """There is no such dump."""

    status = HTTPStatus.NOT_FOUND


class UnknownFile(Problem):
    """The manifest names no such file."""

    status = HTTPStatus.NOT_FOUND


class UnknownLease(Problem):
    """There is no such lease."""

    status = HTTPStatus.NOT_FOUND


class NotComplete(Problem):
    """The dump cannot be read."""

    status = HTTPStatus.CONFLICT


class InUse(Problem):
    """The dump cannot be deleted."""

    status = HTTPStatus.CONFLICT


class UnknownTables(Problem):
    """A table cannot be dumped."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class NotBegun(RetryableError):
    """The pipeline has no position yet, so nobody could go on from a dump."""


class Document(msgspec.Struct, frozen=True):
    """RFC 9457 problem document."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a problem document."""

    @app.exception_handler(Problem)
    async def problem(_: Request, error: Problem) -> Response:
        return _response(error.status, str(error))

    @app.exception_handler(DatabusError)
    async def neighbour(_: Request, error: DatabusError) -> Response:
        headers = {} if isinstance(error, FatalError) else {"Retry-After": _RETRY_AFTER}
        return _response(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        return _response(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(faults))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return _response(
            HTTPStatus(error.status_code), f"{request.method} {request.url.path}: {error.detail}", error.headers
        )


def _response(status: HTTPStatus, detail: str, headers: object = None) -> Response:
    document = msgspec.json.encode(Document(status.phrase, status, detail))
    return Response(document, status, dict(headers or {}), MEDIA_TYPE)  # type: ignore[call-overload]
