"""A schema registry with Confluent's API: it gives each schema of a subject a number."""

from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from databus.errors import RegistryUnavailable, SchemaRefused

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_Told = TypeVar("_Told")
_json = msgspec.json.Encoder().encode


class SchemaRegistry:
    """Registers schemas, each once; a call waits for the answer."""

    def __init__(self, url: str, user: str = "", password: str = "", timeout_s: float = 10) -> None:
        self._url = url.rstrip("/")
        headers = {"Content-Type": _CONTENT_TYPE, "Accept": _CONTENT_TYPE}
        self._http = httpx.Client(auth=(user, password) if user else None, headers=headers, timeout=timeout_s)
        self._ids: dict[tuple[str, bytes], int] = {}

    def register(self, subject: str, schema: Any) -> int:
        """Give the id of an Avro schema, which the registry knows from then on.

        Raises RegistryUnavailable, and SchemaRefused for what trying again cannot help.
        """
        text = _json(schema)
        known = self._ids.get((subject, text))
        if known is None:
            known = self._ids[subject, text] = self._post(subject, text)
        return known

    def check(self) -> None:
        """Ask whether it serves, and us; old ones do not know the question, and say so. Raises as `register` does."""
        close = {"Connection": "close"}
        answer = self._ask("read", self._http.build_request("GET", f"{self._url}/schemas/types", headers=close))
        if not _problem(answer):
            self._told(answer, list[str])

    def _post(self, subject: str, schema: bytes) -> int:
        url = f"{self._url}/subjects/{quote(subject, safe='')}/versions"
        request = self._http.build_request("POST", url, content=_json({"schema": schema.decode()}))
        answer = self._ask(f"write subject {subject}", request)
        if answer.is_success:
            return self._told(answer, _Registered).id
        if answer.status_code == httpx.codes.CONFLICT:
            raise SchemaRefused(
                f"schema registry: a table's new schema does not suit subject {subject}: {_reason(answer)}; "
                "change its compatibility, e.g. to NONE"
            )
        raise SchemaRefused(
            f"schema registry {self._url} refuses subject {subject} ({answer.status_code}): {_reason(answer)}; "
            "check schema_registry_url"
        )

    def _ask(self, what: str, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises RegistryUnavailable, and SchemaRefused where we are not let in."""
        try:
            answer = self._http.send(request)
        except httpx.TransportError as error:
            raise RegistryUnavailable(f"schema registry {self._url} cannot be reached: {error}") from error
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise SchemaRefused(
                f"schema registry {self._url} lets us not {what} ({answer.status_code}): "
                "set schema_registry_user and schema_registry_password"
            )
        if answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise RegistryUnavailable(f"schema registry {self._url} answers {answer.status_code}: {_reason(answer)}")
        return answer

    def _told(self, answer: httpx.Response, kind: type[_Told]) -> _Told:
        """Read what only a registry answers."""
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.DecodeError as error:
            raise SchemaRefused(f"{self._url} is no schema registry, check schema_registry_url: {error}") from error


class _Registered(msgspec.Struct):
    id: int


class _Problem(msgspec.Struct):
    error_code: int
    message: str = ""


def _problem(answer: httpx.Response) -> _Problem | None:
    """Read what a registry says of a request that it refuses."""
    try:
        return msgspec.json.decode(answer.content, type=_Problem)
    except msgspec.DecodeError:
        return None


def _reason(answer: httpx.Response) -> str:
    problem = _problem(answer)
    return f"{problem.message} ({problem.error_code})" if problem else answer.reason_phrase
