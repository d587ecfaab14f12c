"""Who may send requests under `/v1`: clients with an API key that has the scope, at a limited rate.

Health, metrics, the OpenAPI document and the files of the operations page need no key. Without keys in the
configuration every client may do everything, so dump-api then listens only on the loopback interface, unless
`dumps.open` permits more.
"""

import re
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from databus_core.errors import InvalidSettings
from databus_core.settings import Dumps
from databus_core.settings.dumps import ApiKey, Scope
from databus_dump_api.limits import TokenBuckets
from databus_dump_api.problems import Forbidden, Problem, TooManyRequests, Unauthorized, response

_PROTECTED = "/v1/"
#: a lease protects what its holder reads
_LEASES = re.compile(r"/v1/dumps/[^/]+/leases(/[^/]+)?")


def require_protection(settings: Dumps) -> None:
    """Raise InvalidSettings if everybody in the network could use the API without anybody having permitted it."""
    if not (settings.api_keys or settings.open or _is_loopback(settings.listen)):
        raise InvalidSettings(
            f"dumps.listen: without keys, whoever reaches {settings.listen} can read all published rows: "
            "set dumps.api_keys, or dumps.open: true if only those who may do so can reach it"
        )


def scope_of(method: str, path: str) -> Scope:
    """Return the scope that a request needs."""
    return "read" if method in ("GET", "HEAD") or _LEASES.fullmatch(path) else "write"


#: what a browser sends in Sec-Fetch-Site if a page of another origin makes the request
_OTHER_SITES = ("cross-site", "same-site")


class Access:
    """Middleware that refuses requests. It sets `state["client"]`: the name of the key, or the address."""

    def __init__(self, app: ASGIApp, settings: Dumps) -> None:
        self._app = app
        self._keys = settings.api_keys
        self._buckets = TokenBuckets(settings.requests_per_second)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass a request on if it is permitted."""
        if scope["type"] == "http" and scope["path"].startswith(_PROTECTED):
            try:
                scope.setdefault("state", {})["client"] = self._admit(scope)
            except Problem as problem:
                await response(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _admit(self, scope: AsgiScope) -> str:
        """Return the client's name. Raises Unauthorized, Forbidden or TooManyRequests."""
        address, headers = scope["client"][0] if scope.get("client") else "unknown", Headers(scope=scope)
        key = self._key(headers.get("Authorization", "")) if self._keys else None
        client = f"key {key.name}" if key else f"address {address}"
        if wait := self._buckets.take(client):
            raise TooManyRequests(wait)
        if self._keys and key is None:
            raise Unauthorized("send a valid API key: Authorization: Bearer KEY (dumps.api_keys)")
        needed = scope_of(scope["method"], scope["path"])
        if key and needed not in key.scopes:
            raise Forbidden(f"API key {key.name} has not the scope {needed} (dumps.api_keys)")
        if key is None and needed == "write" and headers.get("Sec-Fetch-Site") in _OTHER_SITES:
            raise Forbidden("without API keys, pages of other sites may not change anything (dumps.api_keys)")
        return client

    def _key(self, authorization: str) -> ApiKey | None:
        """Find the key of a header, in a time that does not depend on the keys."""
        kind, _, sent = authorization.partition(" ")
        digest = sha256(sent.strip().encode()).hexdigest()
        found = [key for key in self._keys if compare_digest(key.sha256 or "", digest)]
        return found[0] if found and kind.lower() == "bearer" else None


def _is_loopback(listen: str) -> bool:
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"
