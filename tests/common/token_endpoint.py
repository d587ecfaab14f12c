"""A token endpoint of OAuth 2.0, for the client credentials grant (RFC 6749, 4.4), and signed tokens."""

import asyncio
import json
import socket
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import time
from typing import Any

import uvicorn
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


class Signer:
    """Makes signed tokens, and writes the public key to the file `keys`: a broker that reads it trusts the tokens."""

    def __init__(self, keys: Path) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        numbers = self._key.public_key().public_numbers()
        public = {"n": encoded(numbers.n.to_bytes(256)), "e": encoded(numbers.e.to_bytes(3))}
        keys.write_text(json.dumps({"keys": [{"kty": "RSA", "kid": "test", "alg": "RS256", "use": "sig"} | public]}))

    def token(self) -> str:
        now = int(time())
        claims = {"sub": "databus", "scope": "kafka", "aud": "kafka", "iat": now, "exp": now + 300}
        parts = ({"alg": "RS256", "kid": "test"}, claims)
        text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        return f"{text}.{encoded(self._key.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"


class TokenEndpoint:
    """The endpoint: answers the client `databus`, if it sends this secret, with a token from `make`."""

    def __init__(self, make: Callable[[], str], secret: str) -> None:
        self.url = ""
        #: `expires_in` of the answers, in seconds; a Signer's tokens are always valid for 300 s
        self.lifetime = 300
        #: fields of the forms that clients sent
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        #: if not empty, what is returned instead of a token
        self.answer: dict[str, Any] | bytes = {}
        self._make = make
        self._login = "Basic " + b64encode(f"databus:{secret}".encode()).decode()

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/token", self._grant, methods=["POST"])])

    async def _grant(self, request: Request) -> Response:
        fields = (pair.split("=") for pair in (await request.body()).decode().split("&"))
        self.requests.append(dict(fields))
        if request.headers.get("Authorization") != self._login:
            return JSONResponse({"error": "invalid_client", "error_description": "unknown client"}, 401)
        if isinstance(self.answer, bytes):
            return Response(self.answer, self.status)
        token = {"access_token": self._make(), "token_type": "Bearer", "expires_in": self.lifetime}
        return JSONResponse(self.answer or token, self.status)


@asynccontextmanager
async def serving(endpoint: TokenEndpoint) -> AsyncIterator[TokenEndpoint]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint.url = f"http://127.0.0.1:{listening.getsockname()[1]}/token"
        server = uvicorn.Server(uvicorn.Config(endpoint.app(), log_config=None, lifespan="off"))
        serve = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield endpoint
        finally:
            server.should_exit = True
            await serve
