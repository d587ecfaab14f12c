"""A leader lease stored as a `Lease` of coordination.k8s.io/v1, by the same rules as in Kubernetes' own components.

The clocks of two machines are never compared: a candidate measures on its own monotonic clock how long a Lease has not
changed. The Lease has expired when that time is longer than its duration. Each write names the version that it
replaces, so Kubernetes refuses one of two concurrent writes.
"""

import math
import ssl
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from databus_core.errors import FatalError, InvalidSettings, KubernetesUnavailable

# https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
#: address of the API in a pod
API = "https://kubernetes.default.svc"
#: folder of the service account's credentials in a pod
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_REQUEST_SECONDS = 5
#: the service account's token is not valid, or the account lacks a right
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
#: client errors (4xx) after which a retry may succeed; NOT_FOUND: there is no such namespace, or no API for Leases yet
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.NOT_FOUND)

Json = dict[str, Any]


class _Token(httpx.Auth):
    """The service account's token, read for each request because the kubelet replaces it from time to time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the token to a request."""
        request.headers["Authorization"] = f"Bearer {self._path.read_text().strip()}"
        yield request


@asynccontextmanager
async def connect_kubernetes(api: str = API, account: Path = ACCOUNT) -> AsyncIterator[httpx.AsyncClient]:
    """Make a client for the namespace of this pod. Raises InvalidSettings if `account` lacks namespace or CA."""
    try:
        namespace = (account / "namespace").read_text().strip()
        # Not `create_default_context`: as of Python 3.13, it refuses the authorities of clusters that lack extensions.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(account / "ca.crt")
    except OSError as error:
        raise InvalidSettings(
            f"election.by: kubernetes works only in a pod with a service account's token: {account}: {error.strerror}"
        ) from error
    async with httpx.AsyncClient(
        base_url=f"{api}/apis/coordination.k8s.io/v1/namespaces/{namespace}",
        auth=_Token(account / "token"),
        verify=context,
        timeout=_REQUEST_SECONDS,
        trust_env=False,
    ) as client:
        yield client


class KubernetesLease:
    """A lease whose `holderIdentity` names the holder. Its duration is rounded up to full seconds."""

    def __init__(self, api: httpx.AsyncClient, name: str, me: str, duration: float) -> None:
        self.me = me
        self._api = api
        self._name = name
        self._seconds = math.ceil(duration)
        #: the last `spec` that `take` read while another candidate was the holder
        self._seen: Json = {}
        #: when that `spec` was read for the first time, on the monotonic clock
        self._since = 0.0

    async def take(self) -> str:
        """Write our name and the time into the Lease, unless another candidate holds it. Returns the holder."""
        while True:
            lease = await self._read()
            spec = lease["spec"]
            holder: str | None = spec.get("holderIdentity")
            if holder and holder != self.me and not self._expired(spec):
                return holder
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            if holder != self.me:
                spec |= {"acquireTime": now, "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1}
            spec |= {"holderIdentity": self.me, "leaseDurationSeconds": self._seconds, "renewTime": now}
            if await self._write(lease):
                return self.me

    async def holder(self) -> str | None:
        """Return the `holderIdentity`, also of an expired lease."""
        return (await self._read())["spec"].get("holderIdentity") or None

    async def release(self) -> None:
        """Remove our name from the Lease."""
        while (lease := await self._read())["spec"].get("holderIdentity") == self.me:
            lease["spec"]["holderIdentity"] = None
            if await self._write(lease):
                return

    def _expired(self, spec: Json) -> bool:
        """Return whether this `spec` has not changed for the Lease's duration since we first read it."""
        now = time.monotonic()
        if spec != self._seen:
            self._seen, self._since = spec, now
        return now >= self._since + (spec.get("leaseDurationSeconds") or self._seconds)

    async def _read(self) -> Json:
        """Read the Lease; if there is none, return a new one without a version."""
        with _api_errors():
            answer = await self._api.get(f"/leases/{self._name}")
            if answer.status_code == HTTPStatus.NOT_FOUND:
                return {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self._name},
                    "spec": {},
                }
            lease: Json = answer.raise_for_status().json()
            lease.setdefault("spec", {})
            return lease

    async def _write(self, lease: Json) -> bool:
        """Create the Lease or replace the version we read. Returns False if another client changed it meanwhile."""
        with _api_errors():
            if "resourceVersion" in lease["metadata"]:
                answer = await self._api.put(f"/leases/{self._name}", json=lease)
                if answer.status_code == HTTPStatus.NOT_FOUND:  # it was deleted
                    return False
            else:
                answer = await self._api.post("/leases", json=lease)
            if answer.status_code == HTTPStatus.CONFLICT:
                return False
            answer.raise_for_status()
            return True


@contextmanager
def _api_errors() -> Iterator[None]:
    """Turn errors of a request to the API into errors of ours."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        answer = f"{status} to {error.request.method} {error.request.url}"
        if status in _REFUSALS:
            raise InvalidSettings(
                f"election.by: Kubernetes answers {answer}: grant the service account get, create and update of leases"
            ) from error
        if status in _PASSING or error.response.is_server_error:
            raise KubernetesUnavailable(f"Kubernetes answers {answer}") from error
        raise FatalError(f"Kubernetes answers {answer}: {error.response.text[:200]}") from error
    except (httpx.TransportError, OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise KubernetesUnavailable(f"the Kubernetes API is unavailable: {reason}") from error
