"""A fake of Kubernetes' API for Leases. As in the real one, every object has a version that an update must name.

https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

NAMESPACE = "pipelines"
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class LeaseApi:
    """The API of one namespace: stores its Leases, and refuses requests without this token."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.leases: dict[str, dict[str, Any]] = {}
        self._version = 0
        #: whether the namespace exists; without it, there are no Leases, and none can be created
        self.has_namespace = True

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route(_LEASES, self._create, methods=["POST"]),
                Route(_LEASES + "/{name}", self._get, methods=["GET"]),
                Route(_LEASES + "/{name}", self._replace, methods=["PUT"]),
            ]
        )

    def annotate(self, name: str) -> None:
        """Edit a Lease as an operator might."""
        self._store(self.leases[name] | {"metadata": self.leases[name]["metadata"] | {"annotations": {"seen": "yes"}}})

    async def _create(self, request: Request) -> Response:
        lease = await request.json()
        if refusal := self._refusal(request):
            return refusal
        if not self.has_namespace:
            return _status(404, "NotFound")
        if lease["metadata"]["name"] in self.leases:
            return _status(409, "AlreadyExists")
        return self._store(lease, 201)

    async def _get(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        lease = self.leases.get(request.path_params["name"])
        return JSONResponse(lease) if lease else _status(404, "NotFound")

    async def _replace(self, request: Request) -> Response:
        lease = await request.json()
        if refusal := self._refusal(request):
            return refusal
        known = self.leases.get(request.path_params["name"])
        if known is None:
            return _status(404, "NotFound")
        if lease["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
            return _status(409, "Conflict")
        return self._store(lease)

    def _store(self, lease: dict[str, Any], status: int = 200) -> Response:
        self._version += 1
        lease["metadata"]["resourceVersion"] = str(self._version)
        lease["spec"] = {key: value for key, value in lease["spec"].items() if value is not None}
        self.leases[lease["metadata"]["name"]] = lease
        return JSONResponse(lease, status_code=status)

    def _refusal(self, request: Request) -> Response | None:
        return None if request.headers.get("authorization") == f"Bearer {self.token}" else _status(403, "Forbidden")


def _status(code: int, reason: str) -> Response:
    return JSONResponse({"kind": "Status", "status": "Failure", "reason": reason, "code": code}, status_code=code)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Any:
        """Leave the signals to pytest."""
        yield


@asynccontextmanager
async def serving(api: LeaseApi, certificate: Path) -> AsyncIterator[str]:
    """Serve the API with TLS; yields its URL."""
    config = uvicorn.Config(
        api.app(), log_config=None, lifespan="off", ssl_certfile=str(certificate), ssl_keyfile=str(certificate)
    )
    server = _Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        task = asyncio.create_task(server.serve(sockets=[bound]))
        yield f"https://127.0.0.1:{bound.getsockname()[1]}"
        server.should_exit = True
        await task
