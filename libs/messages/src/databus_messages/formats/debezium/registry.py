"""Client of a schema registry with Confluent's API."""

from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from databus_core.errors import InvalidSettings, RegistryUnavailable, SchemaRefused

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
Body = TypeVar("Body")
_json = msgspec.json.Encoder().encode


class SchemaRegistry:
    """Registers schemas, each one once. All calls block."""

    def __init__(self, url: str, user: str = "", password: str = "", timeout_s: float = 10) -> None:
        self._url = url.rstrip("/")
        headers = {"Content-Type": _CONTENT_TYPE, "Accept": _CONTENT_TYPE}
        self._http = httpx.Client(auth=(user, password) if user else None, headers=headers, timeout=timeout_s)
        self._ids: dict[tuple[str, bytes], int] = {}

    def register(self, subject: str, schema: Any) -> int:
        """Register an Avro schema under a subject and return its id.

        Raises RegistryUnavailable if a retry may succeed, SchemaRefused for this subject, else InvalidSettings.
        """
        text = _json(schema)
        schema_id = self._ids.get((subject, text))
        if schema_id is None:
            schema_id = self._ids[subject, text] = self._post(subject, text)
        return schema_id

    def check(self) -> None:
        """Check that the registry answers and accepts our credentials. Raises RegistryUnavailable or InvalidSettings.

        Any other error document of Confluent's API is accepted: a registry too old for this request returns one.
        """
        close = {"Connection": "close"}
        response = self._send(self._http.build_request("GET", f"{self._url}/schemas/types", headers=close))
        if response.status_code == httpx.codes.FORBIDDEN:
            raise InvalidSettings(self._denied("read", response))
        if not _problem(response):
            self._decode(response, list[str])

    def _post(self, subject: str, schema: bytes) -> int:
        url = f"{self._url}/subjects/{quote(subject, safe='')}/versions"
        request = self._http.build_request("POST", url, content=_json({"schema": schema.decode()}))
        response = self._send(request)
        if response.is_success:
            return self._decode(response, _Registered).id
        if response.status_code == httpx.codes.FORBIDDEN:
            raise SchemaRefused(self._denied(f"write subject {subject}", response))
        if response.status_code == httpx.codes.CONFLICT:
            raise SchemaRefused(
                f"schema registry {self._url}: a table's new schema is incompatible with subject {subject}: "
                f"{_reason(response)}; set the subject's compatibility to NONE or FORWARD"
            )
        # Only a registry that has read the schema answers 422: anything else is not about this table.
        kind = SchemaRefused if response.status_code == httpx.codes.UNPROCESSABLE_ENTITY else InvalidSettings
        raise kind(
            f"schema registry {self._url} rejects subject {subject} ({response.status_code}): {_reason(response)}; "
            "check schema_registry_url"
        )

    def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises RegistryUnavailable, or InvalidSettings if our credentials are rejected."""
        try:
            response = self._http.send(request)
        except httpx.RequestError as error:  # also a body that cannot be inflated
            raise RegistryUnavailable(f"schema registry {self._url} cannot be reached: {error}") from error
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise InvalidSettings(self._denied("log in", response))
        if response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise RegistryUnavailable(
                f"schema registry {self._url} answers {response.status_code}: {_reason(response)}"
            )
        return response

    def _decode(self, response: httpx.Response, kind: type[Body]) -> Body:
        """Decode a response's body. Raises InvalidSettings if it does not come from a schema registry."""
        try:
            return msgspec.json.decode(response.content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidSettings(
                f"{self._url} is not a schema registry ({error}); check schema_registry_url"
            ) from error

    def _denied(self, action: str, response: httpx.Response) -> str:
        return (
            f"schema registry {self._url} does not permit us to {action} ({response.status_code}): "
            "set schema_registry_user and schema_registry_password"
        )


class _Registered(msgspec.Struct):
    id: int


class _Problem(msgspec.Struct):
    error_code: int
    message: str = ""


def _problem(response: httpx.Response) -> _Problem | None:
    """Decode a registry's error document; None if the body is something else."""
    try:
        return msgspec.json.decode(response.content, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _reason(response: httpx.Response) -> str:
    problem = _problem(response)
    return f"{problem.message} ({problem.error_code})" if problem else response.reason_phrase
